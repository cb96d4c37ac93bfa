-- three, different keys, own ranges: (a b c)

-- new_d12c8ab2d8bd249b, kept for 2000000 us
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

-- new_525fd928e0444973, kept for 1000000 us
-- {"columns":["b.j","b.k","b.n","b.ts"],"partials":[],"streams":["b"],"where":[],"within":[]}
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
    i."j" AS "b__j",
    i."k" AS "b__k",
    i."n" AS "b__n",
    i."ts" AS "b__ts"
  FROM "in_b" AS i
) AS r;

-- new_b3f461194003df7b, kept for 3000000 us
-- {"columns":["c.j","c.n","c.ts"],"partials":[],"streams":["c"],"where":[],"within":[]}
SELECT
  *,
  (
    EPOCH_US("c__ts")
  ) - (
    (
      (
        EPOCH_US("c__ts")
      ) % 10000000
    ) + 10000000
  ) % 10000000 + 10000000 AS _until
FROM (
  SELECT
    i."j" AS "c__j",
    i."n" AS "c__n",
    i."ts" AS "c__ts"
  FROM "in_c" AS i
) AS r;

-- out_q
SELECT
  r."a__n" AS "an",
  r."b__n" AS "bn",
  r."c__n" AS "cn"
FROM (
  SELECT
    p0."a__n" AS "a__n",
    p0."a__ts" AS "a__ts",
    p1."b__n" AS "b__n",
    p1."b__ts" AS "b__ts",
    p2."c__n" AS "c__n",
    p2."c__ts" AS "c__ts"
  FROM new_d12c8ab2d8bd249b AS p0
  JOIN state_525fd928e0444973 AS p1
    ON (
      p0."a__k" = p1."b__k"
    )
    AND (
      EPOCH_US(p0."a__ts") <= EPOCH_US(p1."b__ts") + 1000000
    )
    AND (
      EPOCH_US(p1."b__ts") <= EPOCH_US(p0."a__ts") + 2000000
    )
  JOIN state_b3f461194003df7b AS p2
    ON (
      p1."b__j" = p2."c__j"
    )
    AND (
      EPOCH_US(p0."a__ts") <= EPOCH_US(p2."c__ts") + 3000000
    )
    AND (
      EPOCH_US(p2."c__ts") <= EPOCH_US(p0."a__ts") + 2000000
    )
    AND (
      EPOCH_US(p1."b__ts") <= EPOCH_US(p2."c__ts") + 3000000
    )
    AND (
      EPOCH_US(p2."c__ts") <= EPOCH_US(p1."b__ts") + 1000000
    )
  UNION ALL
  SELECT
    p0."a__n" AS "a__n",
    p0."a__ts" AS "a__ts",
    p1."b__n" AS "b__n",
    p1."b__ts" AS "b__ts",
    p2."c__n" AS "c__n",
    p2."c__ts" AS "c__ts"
  FROM new_525fd928e0444973 AS p1
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
      EPOCH_US(p1."b__ts") <= EPOCH_US(p0."a__ts") + 2000000
    )
    AND (
      EPOCH_US(p0."a__ts") <= EPOCH_US(p1."b__ts") + 1000000
    )
  JOIN state_b3f461194003df7b AS p2
    ON (
      p1."b__j" = p2."c__j"
    )
    AND (
      EPOCH_US(p0."a__ts") <= EPOCH_US(p2."c__ts") + 3000000
    )
    AND (
      EPOCH_US(p2."c__ts") <= EPOCH_US(p0."a__ts") + 2000000
    )
    AND (
      EPOCH_US(p1."b__ts") <= EPOCH_US(p2."c__ts") + 3000000
    )
    AND (
      EPOCH_US(p2."c__ts") <= EPOCH_US(p1."b__ts") + 1000000
    )
  UNION ALL
  SELECT
    p0."a__n" AS "a__n",
    p0."a__ts" AS "a__ts",
    p1."b__n" AS "b__n",
    p1."b__ts" AS "b__ts",
    p2."c__n" AS "c__n",
    p2."c__ts" AS "c__ts"
  FROM new_b3f461194003df7b AS p2
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
      EPOCH_US(p2."c__ts") <= EPOCH_US(p0."a__ts") + 2000000
    )
    AND (
      EPOCH_US(p0."a__ts") <= EPOCH_US(p2."c__ts") + 3000000
    )
  JOIN (
    SELECT
      "b__j",
      "b__k",
      "b__n",
      "b__ts"
    FROM state_525fd928e0444973
    UNION ALL
    SELECT
      "b__j",
      "b__k",
      "b__n",
      "b__ts"
    FROM new_525fd928e0444973
  ) AS p1
    ON (
      p0."a__k" = p1."b__k"
    )
    AND (
      p1."b__j" = p2."c__j"
    )
    AND (
      EPOCH_US(p0."a__ts") <= EPOCH_US(p1."b__ts") + 1000000
    )
    AND (
      EPOCH_US(p1."b__ts") <= EPOCH_US(p0."a__ts") + 2000000
    )
    AND (
      EPOCH_US(p2."c__ts") <= EPOCH_US(p1."b__ts") + 1000000
    )
    AND (
      EPOCH_US(p1."b__ts") <= EPOCH_US(p2."c__ts") + 3000000
    )
) AS r;
