-- two, an interval ahead: (a b)

-- new_d12c8ab2d8bd249b, kept for 4000000 us
-- {"columns":["a.k","a.n","a.ts"],"partials":[],"streams":["a"],"where":[],"within":[]}
SELECT
  *,
  EPOCH_US("a@ts") + 1 AS "@until"
FROM (
  SELECT
    i."k" AS "a@k",
    i."n" AS "a@n",
    i."ts" AS "a@ts"
  FROM "in_a" AS i
) AS r;

-- new_2769a226814ab28d, kept for 0 us
-- {"columns":["b.k","b.n","b.ts"],"partials":[],"streams":["b"],"where":[],"within":[]}
SELECT
  *,
  EPOCH_US("b@ts") + 1 AS "@until"
FROM (
  SELECT
    i."k" AS "b@k",
    i."n" AS "b@n",
    i."ts" AS "b@ts"
  FROM "in_b" AS i
) AS r;

-- out_q
SELECT
  r."a@n" AS "an",
  r."b@n" AS "bn",
  r."b@ts" AS "at"
FROM (
  SELECT
    p0."a@n" AS "a@n",
    p0."a@ts" AS "a@ts",
    p1."b@n" AS "b@n",
    p1."b@ts" AS "b@ts"
  FROM new_d12c8ab2d8bd249b AS p0
  JOIN state_2769a226814ab28d AS p1
    ON (
      p0."a@k" = p1."b@k"
    )
    AND (
      EPOCH_US(p0."a@ts") <= EPOCH_US(p1."b@ts") + -1000000
    )
    AND (
      EPOCH_US(p1."b@ts") <= EPOCH_US(p0."a@ts") + 4000000
    )
  UNION ALL
  SELECT
    p0."a@n" AS "a@n",
    p0."a@ts" AS "a@ts",
    p1."b@n" AS "b@n",
    p1."b@ts" AS "b@ts"
  FROM new_2769a226814ab28d AS p1
  JOIN (
    SELECT
      "a@k",
      "a@n",
      "a@ts"
    FROM state_d12c8ab2d8bd249b
    UNION ALL
    SELECT
      "a@k",
      "a@n",
      "a@ts"
    FROM new_d12c8ab2d8bd249b
  ) AS p0
    ON (
      p0."a@k" = p1."b@k"
    )
    AND (
      EPOCH_US(p1."b@ts") <= EPOCH_US(p0."a@ts") + 4000000
    )
    AND (
      EPOCH_US(p0."a@ts") <= EPOCH_US(p1."b@ts") + -1000000
    )
) AS r;
