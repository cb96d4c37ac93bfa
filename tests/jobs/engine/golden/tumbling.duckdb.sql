-- a join, tumbling: ([a] b)

-- new_bf4bca83dd823bc6, kept for 2000000 us
-- {"columns":["a.#weight","a.i","a.k","a.ts"],"partials":[],"streams":["a"],"where":[],"within":[]}
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
    r."a__i" AS "a__i",
    r."a__k" AS "a__k",
    r."a__ts" AS "a__ts",
    COUNT(*) AS "a___weight"
  FROM (
    SELECT
      i."i" AS "a__i",
      i."k" AS "a__k",
      i."ts" AS "a__ts"
    FROM "in_a" AS i
  ) AS r
  GROUP BY
    r."a__i",
    r."a__k",
    r."a__ts"
) AS r;

-- new_3b5097032ba970c8, kept for 2000000 us
-- {"columns":["b.i","b.k","b.price","b.ts","b.weight"],"partials":[],"streams":["b"],"where":[],"within":[]}
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
    i."i" AS "b__i",
    i."k" AS "b__k",
    i."price" AS "b__price",
    i."ts" AS "b__ts",
    i."weight" AS "b__weight"
  FROM "in_b" AS i
) AS r;

-- new_02359d66225e2b7a, kept for 2000000 us
-- {"group":[[["k","a.k"]],[["both","sum","a.i + b.i",false],["mean","avg","b.weight",false],["n","count",false],["total","sum","b.price",false]],"a.ts",2000000,2000000],"streams":["a","b"],"where":["a.k = b.k"],"within":[["a","b",2000000],["b","a",2000000]]}
SELECT
  *,
  (
    "_slot" + 2000000
  ) - (
    (
      (
        "_slot" + 2000000
      ) % 10000000
    ) + 10000000
  ) % 10000000 + 10000000 AS _until
FROM (
  SELECT
    r."a__k" AS "k",
    (
      EPOCH_US(r."a__ts")
    ) - (
      (
        (
          EPOCH_US(r."a__ts")
        ) % 2000000
      ) + 2000000
    ) % 2000000 AS "_slot",
    TRY_CAST(SUM(CASE WHEN NOT (
      1
    ) IS NULL THEN r."a___weight" ELSE 0 END) AS BIGINT) AS "n__count",
    TRY_CAST(SUM(TRY_CAST(r."b__price" AS DECIMAL(38, 2)) * r."a___weight") AS DECIMAL(38, 2)) AS "total__sum",
    TRY_CAST(SUM(TRY_CAST(r."a__i" + r."b__i" AS BIGINT) * r."a___weight") AS BIGINT) AS "both__sum",
    TRY_CAST(SUM(TRY_CAST(r."b__weight" AS DOUBLE) * r."a___weight") AS DOUBLE) AS "mean__sum",
    TRY_CAST(SUM(CASE WHEN NOT (
      r."b__weight"
    ) IS NULL THEN r."a___weight" ELSE 0 END) AS BIGINT) AS "mean__count"
  FROM (
    SELECT
      p0."a___weight" AS "a___weight",
      p0."a__i" AS "a__i",
      p0."a__k" AS "a__k",
      p0."a__ts" AS "a__ts",
      p1."b__i" AS "b__i",
      p1."b__price" AS "b__price",
      p1."b__ts" AS "b__ts",
      p1."b__weight" AS "b__weight"
    FROM new_bf4bca83dd823bc6 AS p0
    JOIN state_3b5097032ba970c8 AS p1
      ON (
        p0."a__k" = p1."b__k"
      )
      AND (
        EPOCH_US(p0."a__ts") <= EPOCH_US(p1."b__ts") + 2000000
      )
      AND (
        EPOCH_US(p1."b__ts") <= EPOCH_US(p0."a__ts") + 2000000
      )
    UNION ALL
    SELECT
      p0."a___weight" AS "a___weight",
      p0."a__i" AS "a__i",
      p0."a__k" AS "a__k",
      p0."a__ts" AS "a__ts",
      p1."b__i" AS "b__i",
      p1."b__price" AS "b__price",
      p1."b__ts" AS "b__ts",
      p1."b__weight" AS "b__weight"
    FROM new_3b5097032ba970c8 AS p1
    JOIN (
      SELECT
        "a___weight",
        "a__i",
        "a__k",
        "a__ts"
      FROM state_bf4bca83dd823bc6
      UNION ALL
      SELECT
        "a___weight",
        "a__i",
        "a__k",
        "a__ts"
      FROM new_bf4bca83dd823bc6
    ) AS p0
      ON (
        p0."a__k" = p1."b__k"
      )
      AND (
        EPOCH_US(p1."b__ts") <= EPOCH_US(p0."a__ts") + 2000000
      )
      AND (
        EPOCH_US(p0."a__ts") <= EPOCH_US(p1."b__ts") + 2000000
      )
  ) AS r
  GROUP BY
    r."a__k",
    (
      EPOCH_US(r."a__ts")
    ) - (
      (
        (
          EPOCH_US(r."a__ts")
        ) % 2000000
      ) + 2000000
    ) % 2000000
) AS r;

-- out_q
SELECT
  r."k" AS "k",
  r."n" AS "n",
  r."total" AS "total",
  r."both" AS "both",
  r."mean" AS "mean"
FROM (
  SELECT
    p."k",
    TRY_CAST(SUM(p."n__count") AS BIGINT) AS "n",
    TRY_CAST(SUM(p."total__sum") AS DECIMAL(38, 2)) AS "total",
    TRY_CAST(SUM(p."both__sum") AS BIGINT) AS "both",
    SUM(p."mean__sum") / NULLIF(SUM(p."mean__count"), 0) AS "mean",
    TIMESTAMP_MICROS(
      (
        p."_slot"
      ) - (
        (
          (
            p."_slot"
          ) % 2000000
        ) + 2000000
      ) % 2000000 - w.i * 2000000
    ) AS "window_start",
    TIMESTAMP_MICROS(
      (
        p."_slot"
      ) - (
        (
          (
            p."_slot"
          ) % 2000000
        ) + 2000000
      ) % 2000000 - w.i * 2000000 + 2000000
    ) AS "window_end"
  FROM (
    SELECT
      "k",
      "n__count",
      "total__sum",
      "both__sum",
      "mean__sum",
      "mean__count",
      "_slot"
    FROM state_02359d66225e2b7a
    UNION ALL
    SELECT
      "k",
      "n__count",
      "total__sum",
      "both__sum",
      "mean__sum",
      "mean__count",
      "_slot"
    FROM new_02359d66225e2b7a
  ) AS p
  CROSS JOIN (VALUES
    (0)) AS w(i)
  WHERE
    (
      p."_slot"
    ) - (
      (
        (
          p."_slot"
        ) % 2000000
      ) + 2000000
    ) % 2000000 - w.i * 2000000 + 2000000 > $emitted_until
    AND (
      p."_slot"
    ) - (
      (
        (
          p."_slot"
        ) % 2000000
      ) + 2000000
    ) % 2000000 - w.i * 2000000 + 2000000 <= $emit_until
    AND p."_slot" + 2000000 <= (
      p."_slot"
    ) - (
      (
        (
          p."_slot"
        ) % 2000000
      ) + 2000000
    ) % 2000000 - w.i * 2000000 + 2000000
  GROUP BY
    p."k",
    (
      p."_slot"
    ) - (
      (
        (
          p."_slot"
        ) % 2000000
      ) + 2000000
    ) % 2000000 - w.i * 2000000
) AS r;
