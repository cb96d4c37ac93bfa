-- two, an interval ahead: (a b)

-- new_d12c8ab2d8bd249b, kept for 4000000 us
-- {"columns":["a.k","a.n","a.ts"],"partials":[],"streams":["a"],"where":[],"within":[]}
SELECT
  *,
  (
    EPOCH_US("a__ts")
  ) - (
    (
      (
        EPOCH_US("a__ts")
      ) % 10000000
    ) + 10000000
  ) % 10000000 + 10000000 AS _until
FROM (
  SELECT
    i."k" AS "a__k",
    i."n" AS "a__n",
    i."ts" AS "a__ts"
  FROM "in_a" AS i
) AS r;

-- new_2769a226814ab28d, kept for 0 us
-- {"columns":["b.k","b.n","b.ts"],"partials":[],"streams":["b"],"where":[],"within":[]}
SELECT
  *,
  (
    EPOCH_US("b__ts")
  ) - (
    (
      (
        EPOCH_US("b__ts")
      ) % 10000000
    ) + 10000000
  ) % 10000000 + 10000000 AS _until
FROM (
  SELECT
    i."k" AS "b__k",
    i."n" AS "b__n",
    i."ts" AS "b__ts"
  FROM "in_b" AS i
) AS r;

-- out_q
SELECT
  r."a__n" AS "an",
  r."b__n" AS "bn",
  r."b__ts" AS "at"
FROM (
  SELECT
    p0."a__n" AS "a__n",
    p0."a__ts" AS "a__ts",
    p1."b__n" AS "b__n",
    p1."b__ts" AS "b__ts"
  FROM new_d12c8ab2d8bd249b AS p0
  JOIN state_2769a226814ab28d AS p1
    ON (
      p0."a__k" = p1."b__k"
    )
    AND (
      EPOCH_US(p0."a__ts") <= EPOCH_US(p1."b__ts") + -1000000
    )
    AND (
      EPOCH_US(p1."b__ts") <= EPOCH_US(p0."a__ts") + 4000000
    )
  UNION ALL
  SELECT
    p0."a__n" AS "a__n",
    p0."a__ts" AS "a__ts",
    p1."b__n" AS "b__n",
    p1."b__ts" AS "b__ts"
  FROM new_2769a226814ab28d AS p1
  JOIN (
    SELECT
      "a__k",
      "a__n",
      "a__ts"
    FROM state_d12c8ab2d8bd249b
    UNION ALL
    SELECT
      "a__k",
      "a__n",
      "a__ts"
    FROM new_d12c8ab2d8bd249b
  ) AS p0
    ON (
      p0."a__k" = p1."b__k"
    )
    AND (
      EPOCH_US(p1."b__ts") <= EPOCH_US(p0."a__ts") + 4000000
    )
    AND (
      EPOCH_US(p0."a__ts") <= EPOCH_US(p1."b__ts") + -1000000
    )
) AS r;
