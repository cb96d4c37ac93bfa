-- one stream: a

-- out_q
SELECT
  r."a@n" AS "n",
  TRY_CAST(r."a@price" * 2 AS DECIMAL(9, 2)) AS "double_price",
  r."a@word" AS "word"
FROM (
  SELECT
    i."n" AS "a@n",
    i."price" AS "a@price",
    i."ts" AS "a@ts",
    i."word" AS "a@word"
  FROM "in_a" AS i
  WHERE
    (
      NOT i."flag"
    ) AND (
      1 < i."k"
    )
) AS r;
