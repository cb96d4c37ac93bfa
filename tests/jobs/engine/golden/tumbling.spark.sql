-- a join, tumbling: ([a] b)

-- new_bf4bca83dd823bc6, kept for 2000000 us
-- {"columns":["a.#weight","a.i","a.k","a.ts"],"partials":[],"streams":["a"],"where":[],"within":[]}
SELECT
  *,
  UNIX_MICROS(`a@ts`) + 1 AS `@until`
FROM (
  SELECT
    r.`a@i` AS `a@i`,
    r.`a@k` AS `a@k`,
    r.`a@ts` AS `a@ts`,
    COUNT(*) AS `a@@weight`
  FROM (
    SELECT
      i.`i` AS `a@i`,
      i.`k` AS `a@k`,
      i.`ts` AS `a@ts`
    FROM `in_a` AS i
  ) AS r
  GROUP BY
    r.`a@i`,
    r.`a@k`,
    r.`a@ts`
) AS r;

-- new_3b5097032ba970c8, kept for 2000000 us
-- {"columns":["b.i","b.k","b.price","b.ts","b.weight"],"partials":[],"streams":["b"],"where":[],"within":[]}
SELECT
  *,
  UNIX_MICROS(`b@ts`) + 1 AS `@until`
FROM (
  SELECT
    i.`i` AS `b@i`,
    i.`k` AS `b@k`,
    i.`price` AS `b@price`,
    i.`ts` AS `b@ts`,
    i.`weight` AS `b@weight`
  FROM `in_b` AS i
) AS r;

-- new_6c9689e573db5bb8, kept for 2000000 us
-- {"group":[[["k","a.k"]],[["both","sum","TRY_ADD(a.i, b.i)",false],["mean","avg","b.weight",false],["n","count",false],["total","sum","b.price",false]],"a.ts",2000000,2000000],"streams":["a","b"],"where":["a.k = b.k"],"within":[["a","b",2000000],["b","a",2000000]]}
SELECT
  *,
  `@slot` + 2000000 + 1 AS `@until`
FROM (
  SELECT
    r.`a@k` AS `k`,
    (
      UNIX_MICROS(r.`a@ts`)
    ) - (
      (
        (
          UNIX_MICROS(r.`a@ts`)
        ) % 2000000
      ) + 2000000
    ) % 2000000 AS `@slot`,
    CAST(SUM(CASE WHEN NOT (
      1
    ) IS NULL THEN r.`a@@weight` ELSE 0 END) AS BIGINT) AS `n@count`,
    CAST(SUM(r.`b@price` * r.`a@@weight`) AS DECIMAL(38, 2)) AS `total@sum`,
    CAST(SUM(CAST(TRY_ADD(r.`a@i`, r.`b@i`) AS DECIMAL(10, 0)) * r.`a@@weight`) AS DECIMAL(38, 0)) AS `both@sum`,
    CAST(SUM(CAST(r.`b@weight` AS DOUBLE) * r.`a@@weight`) AS DOUBLE) AS `mean@sum`,
    CAST(SUM(CASE WHEN NOT (
      r.`b@weight`
    ) IS NULL THEN r.`a@@weight` ELSE 0 END) AS BIGINT) AS `mean@count`
  FROM (
    SELECT
      p0.`a@@weight` AS `a@@weight`,
      p0.`a@i` AS `a@i`,
      p0.`a@k` AS `a@k`,
      p0.`a@ts` AS `a@ts`,
      p1.`b@i` AS `b@i`,
      p1.`b@price` AS `b@price`,
      p1.`b@ts` AS `b@ts`,
      p1.`b@weight` AS `b@weight`
    FROM new_bf4bca83dd823bc6 AS p0
    JOIN state_3b5097032ba970c8 AS p1
      ON (
        p0.`a@k` = p1.`b@k`
      )
      AND (
        UNIX_MICROS(p0.`a@ts`) <= UNIX_MICROS(p1.`b@ts`) + 2000000
      )
      AND (
        UNIX_MICROS(p1.`b@ts`) <= UNIX_MICROS(p0.`a@ts`) + 2000000
      )
    UNION ALL
    SELECT
      p0.`a@@weight` AS `a@@weight`,
      p0.`a@i` AS `a@i`,
      p0.`a@k` AS `a@k`,
      p0.`a@ts` AS `a@ts`,
      p1.`b@i` AS `b@i`,
      p1.`b@price` AS `b@price`,
      p1.`b@ts` AS `b@ts`,
      p1.`b@weight` AS `b@weight`
    FROM new_3b5097032ba970c8 AS p1
    JOIN (
      SELECT
        `a@@weight`,
        `a@i`,
        `a@k`,
        `a@ts`
      FROM state_bf4bca83dd823bc6
      UNION ALL
      SELECT
        `a@@weight`,
        `a@i`,
        `a@k`,
        `a@ts`
      FROM new_bf4bca83dd823bc6
    ) AS p0
      ON (
        p0.`a@k` = p1.`b@k`
      )
      AND (
        UNIX_MICROS(p1.`b@ts`) <= UNIX_MICROS(p0.`a@ts`) + 2000000
      )
      AND (
        UNIX_MICROS(p0.`a@ts`) <= UNIX_MICROS(p1.`b@ts`) + 2000000
      )
  ) AS r
  GROUP BY
    r.`a@k`,
    (
      UNIX_MICROS(r.`a@ts`)
    ) - (
      (
        (
          UNIX_MICROS(r.`a@ts`)
        ) % 2000000
      ) + 2000000
    ) % 2000000
) AS r;

-- out_q
SELECT
  r.`k` AS `k`,
  r.`n` AS `n`,
  r.`total` AS `total`,
  TRY_CAST(r.`both` AS BIGINT) AS `both`,
  r.`mean` AS `mean`
FROM (
  SELECT
    p.`k`,
    CAST(SUM(p.`n@count`) AS BIGINT) AS `n`,
    CAST(SUM(p.`total@sum`) AS DECIMAL(38, 2)) AS `total`,
    CAST(SUM(p.`both@sum`) AS DECIMAL(38, 0)) AS `both`,
    SUM(p.`mean@sum`) / SUM(p.`mean@count`) AS `mean`,
    TIMESTAMP_MICROS(
      (
        p.`@slot`
      ) - (
        (
          (
            p.`@slot`
          ) % 2000000
        ) + 2000000
      ) % 2000000 - w.i * 2000000
    ) AS `window.start`,
    TIMESTAMP_MICROS(
      (
        p.`@slot`
      ) - (
        (
          (
            p.`@slot`
          ) % 2000000
        ) + 2000000
      ) % 2000000 - w.i * 2000000 + 2000000
    ) AS `window.end`
  FROM (
    SELECT
      `k`,
      `n@count`,
      `total@sum`,
      `both@sum`,
      `mean@sum`,
      `mean@count`,
      `@slot`
    FROM state_6c9689e573db5bb8
    UNION ALL
    SELECT
      `k`,
      `n@count`,
      `total@sum`,
      `both@sum`,
      `mean@sum`,
      `mean@count`,
      `@slot`
    FROM new_6c9689e573db5bb8
  ) AS p
  CROSS JOIN VALUES
    (0) AS w(i)
  WHERE
    (
      p.`@slot`
    ) - (
      (
        (
          p.`@slot`
        ) % 2000000
      ) + 2000000
    ) % 2000000 - w.i * 2000000 + 2000000 > :emitted_until
    AND (
      p.`@slot`
    ) - (
      (
        (
          p.`@slot`
        ) % 2000000
      ) + 2000000
    ) % 2000000 - w.i * 2000000 + 2000000 <= :emit_until
    AND p.`@slot` + 2000000 <= (
      p.`@slot`
    ) - (
      (
        (
          p.`@slot`
        ) % 2000000
      ) + 2000000
    ) % 2000000 - w.i * 2000000 + 2000000
  GROUP BY
    p.`k`,
    (
      p.`@slot`
    ) - (
      (
        (
          p.`@slot`
        ) % 2000000
      ) + 2000000
    ) % 2000000 - w.i * 2000000
) AS r;
