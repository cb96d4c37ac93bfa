-- four, no common key: ((a b) (c d))

-- new_d12c8ab2d8bd249b, kept for 2000000 us
-- {"columns":["a.k","a.n","a.ts"],"partials":[],"streams":["a"],"where":[],"within":[]}
SELECT
  *,
  (
    UNIX_MICROS(`a__ts`)
  ) - (
    (
      (
        UNIX_MICROS(`a__ts`)
      ) % 10000000
    ) + 10000000
  ) % 10000000 + 10000000 AS _until
FROM (
  SELECT
    i.`k` AS `a__k`,
    i.`n` AS `a__n`,
    i.`ts` AS `a__ts`
  FROM `in_a` AS i
) AS r;

-- new_525fd928e0444973, kept for 2000000 us
-- {"columns":["b.j","b.k","b.n","b.ts"],"partials":[],"streams":["b"],"where":[],"within":[]}
SELECT
  *,
  (
    UNIX_MICROS(`b__ts`)
  ) - (
    (
      (
        UNIX_MICROS(`b__ts`)
      ) % 10000000
    ) + 10000000
  ) % 10000000 + 10000000 AS _until
FROM (
  SELECT
    i.`j` AS `b__j`,
    i.`k` AS `b__k`,
    i.`n` AS `b__n`,
    i.`ts` AS `b__ts`
  FROM `in_b` AS i
) AS r;

-- new_3e285aa7abda777a, kept for 2000000 us
-- {"columns":["c.i","c.j","c.n","c.ts"],"partials":[],"streams":["c"],"where":[],"within":[]}
SELECT
  *,
  (
    UNIX_MICROS(`c__ts`)
  ) - (
    (
      (
        UNIX_MICROS(`c__ts`)
      ) % 10000000
    ) + 10000000
  ) % 10000000 + 10000000 AS _until
FROM (
  SELECT
    i.`i` AS `c__i`,
    i.`j` AS `c__j`,
    i.`n` AS `c__n`,
    i.`ts` AS `c__ts`
  FROM `in_c` AS i
) AS r;

-- new_b733724cddfe1819, kept for 2000000 us
-- {"columns":["d.i","d.n","d.ts"],"partials":[],"streams":["d"],"where":["d.flag"],"within":[]}
SELECT
  *,
  (
    UNIX_MICROS(`d__ts`)
  ) - (
    (
      (
        UNIX_MICROS(`d__ts`)
      ) % 10000000
    ) + 10000000
  ) % 10000000 + 10000000 AS _until
FROM (
  SELECT
    i.`i` AS `d__i`,
    i.`n` AS `d__n`,
    i.`ts` AS `d__ts`
  FROM `in_d` AS i
  WHERE
    (
      i.`flag`
    )
) AS r;

-- new_862b6b345b3f131c, kept for 2000000 us
-- {"columns":["a.n","a.ts","b.j","b.n","b.ts"],"partials":[],"streams":["a","b"],"where":["a.k = b.k"],"within":[["a","b",2000000],["b","a",2000000]]}
SELECT
  *,
  (
    LEAST(UNIX_MICROS(`a__ts`), UNIX_MICROS(`b__ts`))
  ) - (
    (
      (
        LEAST(UNIX_MICROS(`a__ts`), UNIX_MICROS(`b__ts`))
      ) % 10000000
    ) + 10000000
  ) % 10000000 + 10000000 AS _until
FROM (
  SELECT
    p0.`a__n` AS `a__n`,
    p0.`a__ts` AS `a__ts`,
    p1.`b__j` AS `b__j`,
    p1.`b__n` AS `b__n`,
    p1.`b__ts` AS `b__ts`
  FROM new_d12c8ab2d8bd249b AS p0
  JOIN state_525fd928e0444973 AS p1
    ON (
      p0.`a__k` = p1.`b__k`
    )
    AND (
      UNIX_MICROS(p0.`a__ts`) <= UNIX_MICROS(p1.`b__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`b__ts`) <= UNIX_MICROS(p0.`a__ts`) + 2000000
    )
  UNION ALL
  SELECT
    p0.`a__n` AS `a__n`,
    p0.`a__ts` AS `a__ts`,
    p1.`b__j` AS `b__j`,
    p1.`b__n` AS `b__n`,
    p1.`b__ts` AS `b__ts`
  FROM new_525fd928e0444973 AS p1
  JOIN (
    SELECT
      `a__k`,
      `a__n`,
      `a__ts`
    FROM state_d12c8ab2d8bd249b
    UNION ALL
    SELECT
      `a__k`,
      `a__n`,
      `a__ts`
    FROM new_d12c8ab2d8bd249b
  ) AS p0
    ON (
      p0.`a__k` = p1.`b__k`
    )
    AND (
      UNIX_MICROS(p1.`b__ts`) <= UNIX_MICROS(p0.`a__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`a__ts`) <= UNIX_MICROS(p1.`b__ts`) + 2000000
    )
) AS r;

-- new_2094923a1a90617c, kept for 2000000 us
-- {"columns":["c.j","c.n","c.ts","d.n","d.ts"],"partials":[],"streams":["c","d"],"where":["c.i = d.i","d.flag"],"within":[["c","d",2000000],["d","c",2000000]]}
SELECT
  *,
  (
    LEAST(UNIX_MICROS(`c__ts`), UNIX_MICROS(`d__ts`))
  ) - (
    (
      (
        LEAST(UNIX_MICROS(`c__ts`), UNIX_MICROS(`d__ts`))
      ) % 10000000
    ) + 10000000
  ) % 10000000 + 10000000 AS _until
FROM (
  SELECT
    p0.`c__j` AS `c__j`,
    p0.`c__n` AS `c__n`,
    p0.`c__ts` AS `c__ts`,
    p1.`d__n` AS `d__n`,
    p1.`d__ts` AS `d__ts`
  FROM new_3e285aa7abda777a AS p0
  JOIN state_b733724cddfe1819 AS p1
    ON (
      p0.`c__i` = p1.`d__i`
    )
    AND (
      UNIX_MICROS(p0.`c__ts`) <= UNIX_MICROS(p1.`d__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`d__ts`) <= UNIX_MICROS(p0.`c__ts`) + 2000000
    )
  UNION ALL
  SELECT
    p0.`c__j` AS `c__j`,
    p0.`c__n` AS `c__n`,
    p0.`c__ts` AS `c__ts`,
    p1.`d__n` AS `d__n`,
    p1.`d__ts` AS `d__ts`
  FROM new_b733724cddfe1819 AS p1
  JOIN (
    SELECT
      `c__i`,
      `c__j`,
      `c__n`,
      `c__ts`
    FROM state_3e285aa7abda777a
    UNION ALL
    SELECT
      `c__i`,
      `c__j`,
      `c__n`,
      `c__ts`
    FROM new_3e285aa7abda777a
  ) AS p0
    ON (
      p0.`c__i` = p1.`d__i`
    )
    AND (
      UNIX_MICROS(p1.`d__ts`) <= UNIX_MICROS(p0.`c__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`c__ts`) <= UNIX_MICROS(p1.`d__ts`) + 2000000
    )
) AS r;

-- out_q
SELECT
  r.`a__n` AS `an`,
  r.`b__n` AS `bn`,
  r.`c__n` AS `cn`,
  r.`d__n` AS `dn`
FROM (
  SELECT
    p0.`a__n` AS `a__n`,
    p0.`a__ts` AS `a__ts`,
    p0.`b__n` AS `b__n`,
    p0.`b__ts` AS `b__ts`,
    p1.`c__n` AS `c__n`,
    p1.`c__ts` AS `c__ts`,
    p1.`d__n` AS `d__n`,
    p1.`d__ts` AS `d__ts`
  FROM new_862b6b345b3f131c AS p0
  JOIN state_2094923a1a90617c AS p1
    ON (
      p0.`b__j` = p1.`c__j`
    )
    AND (
      UNIX_MICROS(p0.`a__ts`) <= UNIX_MICROS(p1.`c__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`c__ts`) <= UNIX_MICROS(p0.`a__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`a__ts`) <= UNIX_MICROS(p1.`d__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`d__ts`) <= UNIX_MICROS(p0.`a__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`b__ts`) <= UNIX_MICROS(p1.`c__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`c__ts`) <= UNIX_MICROS(p0.`b__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`b__ts`) <= UNIX_MICROS(p1.`d__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`d__ts`) <= UNIX_MICROS(p0.`b__ts`) + 2000000
    )
  UNION ALL
  SELECT
    p0.`a__n` AS `a__n`,
    p0.`a__ts` AS `a__ts`,
    p0.`b__n` AS `b__n`,
    p0.`b__ts` AS `b__ts`,
    p1.`c__n` AS `c__n`,
    p1.`c__ts` AS `c__ts`,
    p1.`d__n` AS `d__n`,
    p1.`d__ts` AS `d__ts`
  FROM new_2094923a1a90617c AS p1
  JOIN (
    SELECT
      `a__n`,
      `a__ts`,
      `b__j`,
      `b__n`,
      `b__ts`
    FROM state_862b6b345b3f131c
    UNION ALL
    SELECT
      `a__n`,
      `a__ts`,
      `b__j`,
      `b__n`,
      `b__ts`
    FROM new_862b6b345b3f131c
  ) AS p0
    ON (
      p0.`b__j` = p1.`c__j`
    )
    AND (
      UNIX_MICROS(p1.`c__ts`) <= UNIX_MICROS(p0.`a__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`a__ts`) <= UNIX_MICROS(p1.`c__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`c__ts`) <= UNIX_MICROS(p0.`b__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`b__ts`) <= UNIX_MICROS(p1.`c__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`d__ts`) <= UNIX_MICROS(p0.`a__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`a__ts`) <= UNIX_MICROS(p1.`d__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`d__ts`) <= UNIX_MICROS(p0.`b__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`b__ts`) <= UNIX_MICROS(p1.`d__ts`) + 2000000
    )
) AS r;
