-- a stream with itself: (x y)

-- new_a50d0689b688b2be, kept for 2000000 us
-- {"columns":["a.i","a.k","a.n","a.ts"],"partials":[],"streams":["a"],"where":[],"within":[]}
SELECT
  *,
  UNIX_MICROS(`a@ts`) + 1 AS `@until`
FROM (
  SELECT
    i.`i` AS `a@i`,
    i.`k` AS `a@k`,
    i.`n` AS `a@n`,
    i.`ts` AS `a@ts`
  FROM `in_a` AS i
) AS r;

-- out_q
SELECT
  r.`a@1@n` AS `xn`,
  r.`a@2@n` AS `yn`
FROM (
  SELECT
    p0.`a@n` AS `a@1@n`,
    p0.`a@ts` AS `a@1@ts`,
    p1.`a@n` AS `a@2@n`,
    p1.`a@ts` AS `a@2@ts`
  FROM new_a50d0689b688b2be AS p0
  JOIN state_a50d0689b688b2be AS p1
    ON (
      p0.`a@k` = p1.`a@k`
    )
    AND (
      p0.`a@i` < p1.`a@i`
    )
    AND (
      UNIX_MICROS(p0.`a@ts`) <= UNIX_MICROS(p1.`a@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`a@ts`) <= UNIX_MICROS(p0.`a@ts`) + 2000000
    )
  UNION ALL
  SELECT
    p0.`a@n` AS `a@1@n`,
    p0.`a@ts` AS `a@1@ts`,
    p1.`a@n` AS `a@2@n`,
    p1.`a@ts` AS `a@2@ts`
  FROM new_a50d0689b688b2be AS p1
  JOIN (
    SELECT
      `a@i`,
      `a@k`,
      `a@n`,
      `a@ts`
    FROM state_a50d0689b688b2be
    UNION ALL
    SELECT
      `a@i`,
      `a@k`,
      `a@n`,
      `a@ts`
    FROM new_a50d0689b688b2be
  ) AS p0
    ON (
      p0.`a@k` = p1.`a@k`
    )
    AND (
      p0.`a@i` < p1.`a@i`
    )
    AND (
      UNIX_MICROS(p1.`a@ts`) <= UNIX_MICROS(p0.`a@ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`a@ts`) <= UNIX_MICROS(p1.`a@ts`) + 2000000
    )
) AS r;
