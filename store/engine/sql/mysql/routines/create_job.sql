-- A job with one step that is SQL, or with steps among the options; rule is its own, and schedules among the options are shared ones.
-- Here and elsewhere, an argument without a limit is a longtext: a session that is not strict cuts what is too long for its type.
CREATE PROCEDURE dbjobs_create_job(IN name text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN statement longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN rule longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'creates a job, and returns its id; options have the keys of a job in a file'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id bigint;
  DECLARE me, its_owner, named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  DECLARE became longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_check_name('job', 'name', name);
  SET options = COALESCE(options, JSON_OBJECT());
  IF NOT JSON_VALID(options) OR JSON_TYPE(options) <> 'OBJECT' THEN
    CALL dbjobs_check_options(CONCAT('job ', name), options, '[]');
  END IF;
  CALL dbjobs_me(me, everything);
  CALL dbjobs_option_text(CONCAT('job ', name), 'owner', JSON_EXTRACT(options, '$.owner'), its_owner);
  SET its_owner = COALESCE(NULLIF(its_owner, ''), me), options = JSON_REMOVE(options, '$.owner');
  CALL dbjobs_check_name(CONCAT('job ', name), 'owner', its_owner);
  IF its_owner <> me AND NOT everything THEN
    CALL dbjobs_refuse('JB004', CONCAT('job ', LEFT(name, 40), ': owner: only the administrator may give a job to another login'));
  END IF;
  SET named = CONCAT(its_owner, '/', name);
  CALL dbjobs_take_turns();
  IF EXISTS (SELECT 1 FROM dbjobs_jobs j WHERE j.live_name = name AND j.owner = its_owner) THEN
    CALL dbjobs_refuse('JB002', CONCAT('job ', LEFT(named, 60), ': exists already; dbjobs_alter_job changes it'));
  END IF;
  DO LAST_INSERT_ID(0);
  INSERT INTO dbjobs_jobs (owner, name) VALUES (its_owner, name);
  SET its_id = LAST_INSERT_ID();
  IF LAST_INSERT_ID() = 0 THEN
    CALL dbjobs_refuse('JB004', 'insert_id is set in this session, and the server numbers the rows here; call from another session');
  END IF;
  IF statement IS NOT NULL THEN
    SET options = JSON_SET(options, '$.sql', statement);
  END IF;
  IF rule IS NOT NULL AND JSON_TYPE(JSON_EXTRACT(options, '$.rule')) = 'OBJECT' THEN
    SET options = JSON_SET(options, '$.rule.rule', rule);
  ELSEIF rule IS NOT NULL THEN
    SET options = JSON_SET(options, '$.rule', rule);
  END IF;
  IF NOT JSON_CONTAINS_PATH(options, 'one', '$.sql', '$.steps') THEN
    CALL dbjobs_refuse('JB003', CONCAT('job ', LEFT(named, 60), ': the job does nothing; give a statement, or steps'));
  END IF;
  CALL dbjobs_put_job(CONCAT('job ', named), its_id, options);
  CALL dbjobs_job_document(its_id, became);
  CALL dbjobs_log_change('job', its_id, named, 'create', reason, NULL, became);
  CALL dbjobs_done(mine);
  SELECT its_id AS job_id;
END
;
