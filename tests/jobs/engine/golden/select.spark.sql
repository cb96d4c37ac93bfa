-- one stream: a

-- out_q
SELECT
  r.`a__n` AS `n`,
  r.`a__price` * 2 AS `double_price`,
  r.`a__word` AS `word`
FROM (
  SELECT
    i.`n` AS `a__n`,
    i.`price` AS `a__price`,
    i.`ts` AS `a__ts`,
    i.`word` AS `a__word`
  FROM `in_a` AS i
  WHERE
    (
      NOT i.`flag`
    ) AND (
      1 < i.`k`
    )
) AS r;
