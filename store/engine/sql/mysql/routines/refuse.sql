-- A message has at most 128 characters on MySQL. JB001: there is no such thing; JB002: it is there already; JB003: an argument is wrong;
-- JB004: the state of what is named does not allow it; JB005: a name means several jobs.
-- What has to be one of several words is looked up with FIND_IN_SET: to = and IN, a blank at the end is nothing, and a decision knows no such
-- word.
CREATE PROCEDURE dbjobs_refuse(IN state char(5), IN message text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: refuses what was asked for'
BEGIN
  DECLARE said varchar(128) CHARACTER SET utf8mb4 DEFAULT LEFT(message, 128);
  CASE state
  WHEN 'JB001' THEN SIGNAL SQLSTATE 'JB001' SET MESSAGE_TEXT = said;
  WHEN 'JB002' THEN SIGNAL SQLSTATE 'JB002' SET MESSAGE_TEXT = said;
  WHEN 'JB003' THEN SIGNAL SQLSTATE 'JB003' SET MESSAGE_TEXT = said;
  WHEN 'JB004' THEN SIGNAL SQLSTATE 'JB004' SET MESSAGE_TEXT = said;
  ELSE SIGNAL SQLSTATE 'JB005' SET MESSAGE_TEXT = said;
  END CASE;
END
;
