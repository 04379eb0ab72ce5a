CREATE PROCEDURE dbjobs_policy_columns(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN of_owner text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, INOUT c longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: gives columns the policies of options'
BEGIN
  DECLARE list, v, usual, one, sections longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE k, col, kind, words, outer_key, t, me, other_owner, other_name text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE n, other bigint;
  DECLARE at datetime(6);
  DECLARE everything boolean;
  DECLARE i, e int DEFAULT 0;
  CALL dbjobs_me(me, everything);
  CALL dbjobs_policies(list);
  IF JSON_TYPE(JSON_EXTRACT(options, '$.retry')) IN ('INTEGER', 'UNSIGNED INTEGER', 'STRING') THEN -- how often to try again
    IF JSON_UNQUOTE(JSON_EXTRACT(options, '$.retry')) = 'until-next' THEN
      SET n = 0;
    ELSE
      CALL dbjobs_attempts_of(subject, 'retry', JSON_EXTRACT(options, '$.retry'), 1, n);
    END IF;
    SET options = JSON_SET(options, '$.retry', JSON_OBJECT('attempts', IF(n = 0, 'until-next', CAST(n AS char))));
  END IF;
  IF JSON_TYPE(JSON_EXTRACT(options, '$.heartbeat')) = 'STRING' THEN
    SET options = JSON_SET(options, '$.heartbeat', JSON_OBJECT('url', JSON_UNQUOTE(JSON_EXTRACT(options, '$.heartbeat')), 'start', NULL, 'success', NULL, 'failure', NULL));
  END IF;
  SET sections = '{}';
  WHILE e < JSON_LENGTH(list) DO -- the keys within other keys
    SET k = JSON_UNQUOTE(JSON_EXTRACT(list, CONCAT('$[', e, '][0]')));
    IF LOCATE('.', k) > 0 THEN
      SET sections = JSON_MERGE_PRESERVE(sections, JSON_OBJECT(SUBSTRING_INDEX(k, '.', 1), JSON_ARRAY(SUBSTRING_INDEX(k, '.', -1))));
    END IF;
    SET e = e + 1;
  END WHILE;
  SET e = 0;
  WHILE e < JSON_LENGTH(sections) DO
    SET k = JSON_UNQUOTE(JSON_EXTRACT(JSON_KEYS(sections), CONCAT('$[', e, ']')));
    IF COALESCE(JSON_TYPE(JSON_EXTRACT(options, CONCAT('$.', k))), 'NULL') <> 'NULL' THEN
      CALL dbjobs_check_options(CONCAT(LEFT(subject, 40), ': ', k), JSON_EXTRACT(options, CONCAT('$.', k)), JSON_EXTRACT(sections, CONCAT('$.', k)));
    END IF;
    SET e = e + 1;
  END WHILE;
  each_key: WHILE i < JSON_LENGTH(list) DO
    SET k = JSON_UNQUOTE(JSON_EXTRACT(list, CONCAT('$[', i, '][0]'))), col = JSON_UNQUOTE(JSON_EXTRACT(list, CONCAT('$[', i, '][1]'))),
      kind = JSON_UNQUOTE(JSON_EXTRACT(list, CONCAT('$[', i, '][2]'))), usual = JSON_EXTRACT(list, CONCAT('$[', i, '][3]')), words = JSON_UNQUOTE(JSON_EXTRACT(list, CONCAT('$[', i, '][4]'))), outer_key = SUBSTRING_INDEX(k, '.', 1);
    SET i = i + 1;
    SET v = JSON_EXTRACT(options, CONCAT('$.', outer_key));
    IF v IS NOT NULL AND LOCATE('.', k) > 0 AND JSON_TYPE(v) = 'OBJECT' THEN
      SET v = JSON_EXTRACT(options, CONCAT('$.', k));
    END IF;
    IF v IS NULL THEN
      ITERATE each_key;
    END IF;
    IF JSON_TYPE(v) = 'NULL' THEN
      SET v = usual;
    END IF;
    IF JSON_TYPE(v) = 'NULL' THEN
      SET c = JSON_REMOVE(c, CONCAT('$.', col));
      ITERATE each_key;
    END IF;
    CASE
    WHEN kind IN ('text', 'word', 'name', 'hook') THEN
      CALL dbjobs_option_text(subject, k, v, t);
      IF k = 'description' AND LENGTH(t) > 1000 THEN
        CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': description: has more than 1000 bytes; give a shorter one'));
      ELSEIF k <> 'description' AND t = '' THEN
        SET t = IF(JSON_TYPE(usual) = 'NULL', NULL, JSON_UNQUOTE(usual));
      ELSEIF kind = 'name' THEN
        CALL dbjobs_check_name(subject, k, t);
      ELSEIF kind = 'hook' AND FIND_IN_SET(t, 'none') = 0 THEN
        CALL dbjobs_other_job(subject, k, t, of_owner, other, other_owner, other_name);
        SET t = IF(other_owner = of_owner AND other_name <> 'none', other_name, CONCAT_WS('/', NULLIF(other_owner, ''), other_name));
      END IF;
      IF k = 'group' AND t IS NOT NULL AND NOT EXISTS (SELECT 1 FROM dbjobs_groups g WHERE g.name = t AND (everything OR g.owner = me)) THEN
        CALL dbjobs_refuse('JB001', CONCAT(LEFT(subject, 50), ': there is no group ', LEFT(t, 30), '; add it to dbjobs_groups'));
      END IF;
      IF kind = 'word' AND FIND_IN_SET(t, words) = 0 THEN
        CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 40), ': ', k, ': "', LEFT(t, 20), '" is no such word; see the check of dbjobs_jobs'));
      END IF;
      SET c = IF(t IS NULL, JSON_REMOVE(c, CONCAT('$.', col)), JSON_SET(c, CONCAT('$.', col), t));
    WHEN kind IN ('number', 'percent') THEN
      IF JSON_TYPE(v) NOT IN ('INTEGER', 'UNSIGNED INTEGER') OR NOT v REGEXP '^-?[0-9]{1,18}$' THEN
        CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': ', k, ': ', LEFT(v, 20), ' is no whole number; give one without quotes'));
      END IF;
      SET n = CAST(v AS SIGNED);
      IF n < CASE WHEN k = 'priority' THEN -2147483648 WHEN kind = 'percent' OR JSON_TYPE(usual) = 'NULL' THEN 0 ELSE 1 END
        OR n > CASE WHEN kind = 'percent' THEN 100 WHEN k = 'max_runs' THEN 999999999999999999 ELSE 2147483647 END THEN
        CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': ', k, ': ', n, ' is too small or too large; give another number'));
      END IF;
      SET c = IF(n = 0 AND JSON_TYPE(usual) = 'NULL', JSON_REMOVE(c, CONCAT('$.', col)), JSON_SET(c, CONCAT('$.', col), n));
    WHEN kind IN ('length', 'again') THEN
      CALL dbjobs_option_text(subject, k, v, t);
      CALL dbjobs_milliseconds(subject, k, t, n);
      IF n = 0 AND k IN ('keep.age', 'missed_grace') THEN
        CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': ', k, ': is zero; give a length of time, such as 30d'));
      END IF;
      SET c = IF(n = 0 AND JSON_TYPE(usual) = 'NULL', JSON_REMOVE(c, CONCAT('$.', col)), JSON_SET(c, CONCAT('$.', col), n));
    WHEN kind = 'attempts' THEN
      CALL dbjobs_attempts_of(subject, k, v, 0, n);
      SET c = JSON_SET(c, CONCAT('$.', col), n);
    WHEN kind = 'instant' THEN
      CALL dbjobs_option_text(subject, k, v, t);
      CALL dbjobs_instant(subject, k, t, at);
      SET c = JSON_SET(c, CONCAT('$.', col), CAST(at AS char));
    WHEN kind = 'tags' THEN
      CALL dbjobs_sorted_texts(subject, k, v, one);
      SET c = JSON_SET(c, CONCAT('$.', col), one);
    ELSE
      IF JSON_TYPE(v) <> 'BOOLEAN' THEN
        CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': ', k, ': ', LEFT(v, 20), ' is neither true nor false; give one of these'));
      END IF;
      SET c = JSON_SET(c, CONCAT('$.', col), IF((v = 'true') = (kind = 'flag'), 1, 0));
    END CASE;
  END WHILE;
END
;
