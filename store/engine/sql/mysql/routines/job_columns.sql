CREATE PROCEDURE dbjobs_job_columns(IN its_id bigint, OUT c longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: the columns of the policies of a job, without those that are NULL'
BEGIN
  SET c = (SELECT JSON_MERGE_PATCH('{}', JSON_OBJECT(
    '@column', j.@column
  )) FROM dbjobs_jobs j WHERE j.id = its_id);
END
;
