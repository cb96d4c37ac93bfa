-- one stream, sliding, looking at its window: a

-- new_a518917226b529d7, kept for 0 us
-- {"group":[[["j","a.j"]],[["recent","max","a.weight","(window_end - INTERVAL '1' SECOND) <= a.ts",true],["total","sum","a.i",false]],"a.ts",3000000,1000000],"streams":["a"],"where":[],"within":[]}
SELECT
  *,
  (
    `_slot` + 3000000
  ) - (
    (
      (
        `_slot` + 3000000
      ) % 10000000
    ) + 10000000
  ) % 10000000 + 10000000 AS _until
FROM (
  SELECT
    r.`a__j` AS `j`,
    (
      UNIX_MICROS(r.`a__ts`)
    ) - (
      (
        (
          UNIX_MICROS(r.`a__ts`)
        ) % 1000000
      ) + 1000000
    ) % 1000000 - w.i * 1000000 AS `_slot`,
    CAST(SUM(CAST(r.`a__i` AS BIGINT) * 1) AS BIGINT) AS `total__sum`,
    MAX(
      CASE
        WHEN (
          TIMESTAMP_MICROS(
            (
              UNIX_MICROS(r.`a__ts`)
            ) - (
              (
                (
                  UNIX_MICROS(r.`a__ts`)
                ) % 1000000
              ) + 1000000
            ) % 1000000 - w.i * 1000000 + 3000000
          ) - INTERVAL '1' SECOND
        ) <= r.`a__ts`
        THEN r.`a__weight`
      END
    ) AS `recent__max`
  FROM (
    SELECT
      i.`i` AS `a__i`,
      i.`j` AS `a__j`,
      i.`ts` AS `a__ts`,
      i.`weight` AS `a__weight`
    FROM `in_a` AS i
  ) AS r
  CROSS JOIN VALUES
    (0),
    (1),
    (2) AS w(i)
  WHERE
    UNIX_MICROS(r.`a__ts`) < (
      UNIX_MICROS(r.`a__ts`)
    ) - (
      (
        (
          UNIX_MICROS(r.`a__ts`)
        ) % 1000000
      ) + 1000000
    ) % 1000000 - w.i * 1000000 + 3000000
  GROUP BY
    r.`a__j`,
    (
      UNIX_MICROS(r.`a__ts`)
    ) - (
      (
        (
          UNIX_MICROS(r.`a__ts`)
        ) % 1000000
      ) + 1000000
    ) % 1000000 - w.i * 1000000
) AS r;

-- out_q
SELECT
  r.`j` AS `j`,
  r.`total` AS `total`,
  r.`recent` AS `recent`
FROM (
  SELECT
    p.`j`,
    CAST(SUM(p.`total__sum`) AS BIGINT) AS `total`,
    MAX(p.`recent__max`) AS `recent`,
    TIMESTAMP_MICROS(p.`_slot`) AS `window_start`,
    TIMESTAMP_MICROS(p.`_slot` + 3000000) AS `window_end`
  FROM (
    SELECT
      `j`,
      `total__sum`,
      `recent__max`,
      `_slot`
    FROM state_a518917226b529d7
    UNION ALL
    SELECT
      `j`,
      `total__sum`,
      `recent__max`,
      `_slot`
    FROM new_a518917226b529d7
  ) AS p
  WHERE
    p.`_slot` + 3000000 > :emitted_until AND p.`_slot` + 3000000 <= :emit_until
  GROUP BY
    p.`j`,
    p.`_slot`
) AS r;
