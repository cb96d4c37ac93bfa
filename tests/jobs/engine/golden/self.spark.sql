-- a stream with itself: (x y)

-- new_a50d0689b688b2be, kept for 2000000 us
-- {"columns":["a.i","a.k","a.n","a.ts"],"partials":[],"streams":["a"],"where":[],"within":[]}
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
    i.`i` AS `a__i`,
    i.`k` AS `a__k`,
    i.`n` AS `a__n`,
    i.`ts` AS `a__ts`
  FROM `in_a` AS i
) AS r;

-- out_q
SELECT
  r.`a_1__n` AS `xn`,
  r.`a_2__n` AS `yn`
FROM (
  SELECT
    p0.`a__n` AS `a_1__n`,
    p0.`a__ts` AS `a_1__ts`,
    p1.`a__n` AS `a_2__n`,
    p1.`a__ts` AS `a_2__ts`
  FROM new_a50d0689b688b2be AS p0
  JOIN state_a50d0689b688b2be AS p1
    ON (
      p0.`a__k` = p1.`a__k`
    )
    AND (
      p0.`a__i` < p1.`a__i`
    )
    AND (
      UNIX_MICROS(p0.`a__ts`) <= UNIX_MICROS(p1.`a__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p1.`a__ts`) <= UNIX_MICROS(p0.`a__ts`) + 2000000
    )
  UNION ALL
  SELECT
    p0.`a__n` AS `a_1__n`,
    p0.`a__ts` AS `a_1__ts`,
    p1.`a__n` AS `a_2__n`,
    p1.`a__ts` AS `a_2__ts`
  FROM new_a50d0689b688b2be AS p1
  JOIN (
    SELECT
      `a__i`,
      `a__k`,
      `a__n`,
      `a__ts`
    FROM state_a50d0689b688b2be
    UNION ALL
    SELECT
      `a__i`,
      `a__k`,
      `a__n`,
      `a__ts`
    FROM new_a50d0689b688b2be
  ) AS p0
    ON (
      p0.`a__k` = p1.`a__k`
    )
    AND (
      p0.`a__i` < p1.`a__i`
    )
    AND (
      UNIX_MICROS(p1.`a__ts`) <= UNIX_MICROS(p0.`a__ts`) + 2000000
    )
    AND (
      UNIX_MICROS(p0.`a__ts`) <= UNIX_MICROS(p1.`a__ts`) + 2000000
    )
) AS r;
