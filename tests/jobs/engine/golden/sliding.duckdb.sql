-- one stream, sliding, looking at its window: a

-- new_d28b729dbafe8900, kept for 0 us
-- {"group":[[["j","a.j"]],[["recent","max","a.weight","(window.end - INTERVAL '1' SECOND) <= a.ts",true],["total","sum","a.i",false]],"a.ts",3000000,1000000],"streams":["a"],"where":[],"within":[]}
SELECT
  *,
  "@slot" + 3000000 + 1 AS "@until"
FROM (
  SELECT
    r."a@j" AS "j",
    (
      EPOCH_US(r."a@ts")
    ) - (
      (
        (
          EPOCH_US(r."a@ts")
        ) % 1000000
      ) + 1000000
    ) % 1000000 - w.i * 1000000 AS "@slot",
    TRY_CAST(SUM(TRY_CAST(r."a@i" AS BIGINT)) AS DECIMAL(38, 0)) AS "total@sum",
    MAX(
      CASE
        WHEN (
          TRY(
            TIMESTAMP_MICROS(
              (
                EPOCH_US(r."a@ts")
              ) - (
                (
                  (
                    EPOCH_US(r."a@ts")
                  ) % 1000000
                ) + 1000000
              ) % 1000000 - w.i * 1000000 + 3000000
            ) - INTERVAL '1' SECOND
          )
        ) <= r."a@ts"
        THEN r."a@weight"
      END
    ) AS "recent@max"
  FROM (
    SELECT
      i."i" AS "a@i",
      i."j" AS "a@j",
      i."ts" AS "a@ts",
      i."weight" AS "a@weight"
    FROM "in_a" AS i
  ) AS r
  CROSS JOIN (VALUES
    (0),
    (1),
    (2)) AS w(i)
  WHERE
    EPOCH_US(r."a@ts") < (
      EPOCH_US(r."a@ts")
    ) - (
      (
        (
          EPOCH_US(r."a@ts")
        ) % 1000000
      ) + 1000000
    ) % 1000000 - w.i * 1000000 + 3000000
  GROUP BY
    r."a@j",
    (
      EPOCH_US(r."a@ts")
    ) - (
      (
        (
          EPOCH_US(r."a@ts")
        ) % 1000000
      ) + 1000000
    ) % 1000000 - w.i * 1000000
) AS r;

-- out_q
SELECT
  r."j" AS "j",
  TRY_CAST(r."total" AS BIGINT) AS "total",
  r."recent" AS "recent"
FROM (
  SELECT
    p."j",
    TRY_CAST(SUM(p."total@sum") AS DECIMAL(38, 0)) AS "total",
    MAX(p."recent@max") AS "recent",
    TIMESTAMP_MICROS(p."@slot") AS "window.start",
    TIMESTAMP_MICROS(p."@slot" + 3000000) AS "window.end"
  FROM (
    SELECT
      "j",
      "total@sum",
      "recent@max",
      "@slot"
    FROM state_d28b729dbafe8900
    UNION ALL
    SELECT
      "j",
      "total@sum",
      "recent@max",
      "@slot"
    FROM new_d28b729dbafe8900
  ) AS p
  WHERE
    p."@slot" + 3000000 > $emitted_until AND p."@slot" + 3000000 <= $emit_until
  GROUP BY
    p."j",
    p."@slot"
) AS r;
