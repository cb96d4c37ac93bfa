-- four, no common key: ((a b) (c d))

-- new_d12c8ab2d8bd249b, kept for 2000000 us
-- {"columns":["a.k","a.n","a.ts"],"partials":[],"streams":["a"],"where":[],"within":[]}
SELECT
  *,
  UNIX_MICROS(`a@ts`) + 1 AS `@until`
FROM (
  SELECT
    i.`k` AS `a@k`,
    i.`n` AS `a@n`,
    i.`ts` AS `a@ts`
  FROM `in_a` AS i
) AS r;

-- new_525fd928e0444973, kept for 2000000 us
-- {"columns":["b.j","b.k","b.n","b.ts"],"partials":[],"streams":["b"],"where":[],"within":[]}
SELECT
  *,
  UNIX_MICROS(`b@ts`) + 1 AS `@until`
FROM (
  SELECT
    i.`j` AS `b@j`,
    i.`k` AS `b@k`,
    i.`n` AS `b@n`,
    i.`ts` AS `b@ts`
  FROM `in_b` AS i
) AS r;

-- new_3e285aa7abda777a, kept for 2000000 us
-- {"columns":["c.i","c.j","c.n","c.ts"],"partials":[],"streams":["c"],"where":[],"within":[]}
SELECT
  *,
  UNIX_MICROS(`c@ts`) + 1 AS `@until`
FROM (
  SELECT
    i.`i` AS `c@i`,
    i.`j` AS `c@j`,
    i.`n` AS `c@n`,
    i.`ts` AS `c@ts`
  FROM `in_c` AS i
) AS r;

-- new_b733724cddfe1819, kept for 2000000 us
-- {"columns":["d.i","d.n","d.ts"],"partials":[],"streams":["d"],"where":["d.flag"],"within":[]}
SELECT
  *,
  UNIX_MICROS(`d@ts`) + 1 AS `@until`
FROM (
  SELECT
    i.`i` AS `d@i`,
    i.`n` AS `d@n`,
    i.`ts` AS `d@ts`
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
  LEAST(UNIX_MICROS(`a@ts`), UNIX_MICROS(`b@ts`)) + 1 AS `@until`
FROM (
  SELECT
    p0.`a@n` AS `a@n`,
    p0.`a@ts` AS `a@ts`,
    p1.`b@j` AS `b@j`,
    p1.`b@n` AS `b@n`,
    p1.`b@ts` AS `b@ts`
  FROM new_d12c8ab2d8bd249b AS p0
  JOIN state_525fd928e0444973 AS p1
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
    p0.`a@n` AS `a@n`,
    p0.`a@ts` AS `a@ts`,
    p1.`b@j` AS `b@j`,
    p1.`b@n` AS `b@n`,
    p1.`b@ts` AS `b@ts`
  FROM new_525fd928e0444973 AS p1
  JOIN (
    SELECT
      `a@k`,
      `a@n`,
      `a@ts`
    FROM state_d12c8ab2d8bd249b
    UNION ALL
    SELECT
      `a@k`,
      `a@n`,
      `a@ts`
    FROM new_d12c8ab2d8bd249b
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
) AS r;

-- new_2094923a1a90617c, kept for 2000000 us
-- {"columns":["c.j","c.n","c.ts","d.n","d.ts"],"partials":[],"streams":["c","d"],"where":["c.i = d.i","d.flag"],"within":[["c","d",2000000],["d","c",2000000]]}
SELECT
  *,
  LEAST(UNIX_MICROS(`c@ts`), UNIX_MICROS(`d@ts`)) + 1 AS `@until`
FROM (
  SELECT
    p0.`c@j` AS `c@j`,
    p0.`c@n` AS `c@n`,
    p0.`c@ts` AS `c@ts`,
    p1.`d@n` AS `d@n`,
    p1.`d@ts` AS `d@ts`
  FROM new_3e285aa7abda777a AS p0
  JOIN state_b733724cddfe1819 AS p1
    ON (
      p0.`c@i` = p1.`d@i`
    )
    AND (
      UNIX_MICROS(p0.`c@ts`) <= UNIX_MICROS(p1.`d@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`d@ts`) <= UNIX_MICROS(p0.`c@ts`) + 2000000
    )
  UNION ALL
  SELECT
    p0.`c@j` AS `c@j`,
    p0.`c@n` AS `c@n`,
    p0.`c@ts` AS `c@ts`,
    p1.`d@n` AS `d@n`,
    p1.`d@ts` AS `d@ts`
  FROM new_b733724cddfe1819 AS p1
  JOIN (
    SELECT
      `c@i`,
      `c@j`,
      `c@n`,
      `c@ts`
    FROM state_3e285aa7abda777a
    UNION ALL
    SELECT
      `c@i`,
      `c@j`,
      `c@n`,
      `c@ts`
    FROM new_3e285aa7abda777a
  ) AS p0
    ON (
      p0.`c@i` = p1.`d@i`
    )
    AND (
      UNIX_MICROS(p1.`d@ts`) <= UNIX_MICROS(p0.`c@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`c@ts`) <= UNIX_MICROS(p1.`d@ts`) + 2000000
    )
) AS r;

-- out_q
SELECT
  r.`a@n` AS `an`,
  r.`b@n` AS `bn`,
  r.`c@n` AS `cn`,
  r.`d@n` AS `dn`
FROM (
  SELECT
    p0.`a@n` AS `a@n`,
    p0.`a@ts` AS `a@ts`,
    p0.`b@n` AS `b@n`,
    p0.`b@ts` AS `b@ts`,
    p1.`c@n` AS `c@n`,
    p1.`c@ts` AS `c@ts`,
    p1.`d@n` AS `d@n`,
    p1.`d@ts` AS `d@ts`
  FROM new_862b6b345b3f131c AS p0
  JOIN state_2094923a1a90617c AS p1
    ON (
      p0.`b@j` = p1.`c@j`
    )
    AND (
      UNIX_MICROS(p0.`a@ts`) <= UNIX_MICROS(p1.`c@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`c@ts`) <= UNIX_MICROS(p0.`a@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`a@ts`) <= UNIX_MICROS(p1.`d@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`d@ts`) <= UNIX_MICROS(p0.`a@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`b@ts`) <= UNIX_MICROS(p1.`c@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`c@ts`) <= UNIX_MICROS(p0.`b@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`b@ts`) <= UNIX_MICROS(p1.`d@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`d@ts`) <= UNIX_MICROS(p0.`b@ts`) + 2000000
    )
  UNION ALL
  SELECT
    p0.`a@n` AS `a@n`,
    p0.`a@ts` AS `a@ts`,
    p0.`b@n` AS `b@n`,
    p0.`b@ts` AS `b@ts`,
    p1.`c@n` AS `c@n`,
    p1.`c@ts` AS `c@ts`,
    p1.`d@n` AS `d@n`,
    p1.`d@ts` AS `d@ts`
  FROM new_2094923a1a90617c AS p1
  JOIN (
    SELECT
      `a@n`,
      `a@ts`,
      `b@j`,
      `b@n`,
      `b@ts`
    FROM state_862b6b345b3f131c
    UNION ALL
    SELECT
      `a@n`,
      `a@ts`,
      `b@j`,
      `b@n`,
      `b@ts`
    FROM new_862b6b345b3f131c
  ) AS p0
    ON (
      p0.`b@j` = p1.`c@j`
    )
    AND (
      UNIX_MICROS(p1.`c@ts`) <= UNIX_MICROS(p0.`a@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`a@ts`) <= UNIX_MICROS(p1.`c@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`c@ts`) <= UNIX_MICROS(p0.`b@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`b@ts`) <= UNIX_MICROS(p1.`c@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`d@ts`) <= UNIX_MICROS(p0.`a@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`a@ts`) <= UNIX_MICROS(p1.`d@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`d@ts`) <= UNIX_MICROS(p0.`b@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`b@ts`) <= UNIX_MICROS(p1.`d@ts`) + 2000000
    )
) AS r;
