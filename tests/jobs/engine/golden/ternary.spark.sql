-- three, different keys, own ranges: (a b c)

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

-- new_525fd928e0444973, kept for 1000000 us
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

-- new_b3f461194003df7b, kept for 3000000 us
-- {"columns":["c.j","c.n","c.ts"],"partials":[],"streams":["c"],"where":[],"within":[]}
SELECT
  *,
  UNIX_MICROS(`c@ts`) + 1 AS `@until`
FROM (
  SELECT
    i.`j` AS `c@j`,
    i.`n` AS `c@n`,
    i.`ts` AS `c@ts`
  FROM `in_c` AS i
) AS r;

-- out_q
SELECT
  r.`a@n` AS `an`,
  r.`b@n` AS `bn`,
  r.`c@n` AS `cn`
FROM (
  SELECT
    p0.`a@n` AS `a@n`,
    p0.`a@ts` AS `a@ts`,
    p1.`b@n` AS `b@n`,
    p1.`b@ts` AS `b@ts`,
    p2.`c@n` AS `c@n`,
    p2.`c@ts` AS `c@ts`
  FROM new_d12c8ab2d8bd249b AS p0
  JOIN state_525fd928e0444973 AS p1
    ON (
      p0.`a@k` = p1.`b@k`
    )
    AND (
      UNIX_MICROS(p0.`a@ts`) <= UNIX_MICROS(p1.`b@ts`) + 1000000
    )
    AND (
      UNIX_MICROS(p1.`b@ts`) <= UNIX_MICROS(p0.`a@ts`) + 2000000
    )
  JOIN state_b3f461194003df7b AS p2
    ON (
      p1.`b@j` = p2.`c@j`
    )
    AND (
      UNIX_MICROS(p0.`a@ts`) <= UNIX_MICROS(p2.`c@ts`) + 3000000
    )
    AND (
      UNIX_MICROS(p2.`c@ts`) <= UNIX_MICROS(p0.`a@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`b@ts`) <= UNIX_MICROS(p2.`c@ts`) + 3000000
    )
    AND (
      UNIX_MICROS(p2.`c@ts`) <= UNIX_MICROS(p1.`b@ts`) + 1000000
    )
  UNION ALL
  SELECT
    p0.`a@n` AS `a@n`,
    p0.`a@ts` AS `a@ts`,
    p1.`b@n` AS `b@n`,
    p1.`b@ts` AS `b@ts`,
    p2.`c@n` AS `c@n`,
    p2.`c@ts` AS `c@ts`
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
      UNIX_MICROS(p0.`a@ts`) <= UNIX_MICROS(p1.`b@ts`) + 1000000
    )
  JOIN state_b3f461194003df7b AS p2
    ON (
      p1.`b@j` = p2.`c@j`
    )
    AND (
      UNIX_MICROS(p0.`a@ts`) <= UNIX_MICROS(p2.`c@ts`) + 3000000
    )
    AND (
      UNIX_MICROS(p2.`c@ts`) <= UNIX_MICROS(p0.`a@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`b@ts`) <= UNIX_MICROS(p2.`c@ts`) + 3000000
    )
    AND (
      UNIX_MICROS(p2.`c@ts`) <= UNIX_MICROS(p1.`b@ts`) + 1000000
    )
  UNION ALL
  SELECT
    p0.`a@n` AS `a@n`,
    p0.`a@ts` AS `a@ts`,
    p1.`b@n` AS `b@n`,
    p1.`b@ts` AS `b@ts`,
    p2.`c@n` AS `c@n`,
    p2.`c@ts` AS `c@ts`
  FROM new_b3f461194003df7b AS p2
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
      UNIX_MICROS(p2.`c@ts`) <= UNIX_MICROS(p0.`a@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`a@ts`) <= UNIX_MICROS(p2.`c@ts`) + 3000000
    )
  JOIN (
    SELECT
      `b@j`,
      `b@k`,
      `b@n`,
      `b@ts`
    FROM state_525fd928e0444973
    UNION ALL
    SELECT
      `b@j`,
      `b@k`,
      `b@n`,
      `b@ts`
    FROM new_525fd928e0444973
  ) AS p1
    ON (
      p0.`a@k` = p1.`b@k`
    )
    AND (
      p1.`b@j` = p2.`c@j`
    )
    AND (
      UNIX_MICROS(p0.`a@ts`) <= UNIX_MICROS(p1.`b@ts`) + 1000000
    )
    AND (
      UNIX_MICROS(p1.`b@ts`) <= UNIX_MICROS(p0.`a@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p2.`c@ts`) <= UNIX_MICROS(p1.`b@ts`) + 1000000
    )
    AND (
      UNIX_MICROS(p1.`b@ts`) <= UNIX_MICROS(p2.`c@ts`) + 3000000
    )
) AS r;
