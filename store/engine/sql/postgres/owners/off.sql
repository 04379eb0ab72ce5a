-- Rows belong to nobody again, for `dbjobs migrate --owners=false`. The roles stay, since other databases may use them.

UPDATE dbjobs.installation SET owners = false WHERE owners;
ALTER TABLE dbjobs.jobs DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.jobs;
DROP POLICY IF EXISTS every ON dbjobs.jobs;
DROP POLICY IF EXISTS read ON dbjobs.jobs;
ALTER TABLE dbjobs.steps DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.steps;
DROP POLICY IF EXISTS every ON dbjobs.steps;
DROP POLICY IF EXISTS read ON dbjobs.steps;
ALTER TABLE dbjobs.schedules DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.schedules;
DROP POLICY IF EXISTS every ON dbjobs.schedules;
DROP POLICY IF EXISTS read ON dbjobs.schedules;
ALTER TABLE dbjobs.calendars DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.calendars;
DROP POLICY IF EXISTS every ON dbjobs.calendars;
DROP POLICY IF EXISTS read ON dbjobs.calendars;
ALTER TABLE dbjobs.groups DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.groups;
DROP POLICY IF EXISTS every ON dbjobs.groups;
DROP POLICY IF EXISTS read ON dbjobs.groups;
ALTER TABLE dbjobs.group_plans DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.group_plans;
DROP POLICY IF EXISTS every ON dbjobs.group_plans;
DROP POLICY IF EXISTS read ON dbjobs.group_plans;
ALTER TABLE dbjobs.job_schedules DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.job_schedules;
DROP POLICY IF EXISTS every ON dbjobs.job_schedules;
DROP POLICY IF EXISTS read ON dbjobs.job_schedules;
ALTER TABLE dbjobs.job_after DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.job_after;
DROP POLICY IF EXISTS every ON dbjobs.job_after;
DROP POLICY IF EXISTS read ON dbjobs.job_after;
ALTER TABLE dbjobs.job_ends DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.job_ends;
DROP POLICY IF EXISTS every ON dbjobs.job_ends;
DROP POLICY IF EXISTS read ON dbjobs.job_ends;
ALTER TABLE dbjobs.plans DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.plans;
DROP POLICY IF EXISTS every ON dbjobs.plans;
DROP POLICY IF EXISTS read ON dbjobs.plans;
ALTER TABLE dbjobs.plan_rules DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.plan_rules;
DROP POLICY IF EXISTS every ON dbjobs.plan_rules;
DROP POLICY IF EXISTS read ON dbjobs.plan_rules;
ALTER TABLE dbjobs.runs DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.runs;
DROP POLICY IF EXISTS every ON dbjobs.runs;
DROP POLICY IF EXISTS read ON dbjobs.runs;
ALTER TABLE dbjobs.attempts DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.attempts;
DROP POLICY IF EXISTS every ON dbjobs.attempts;
DROP POLICY IF EXISTS read ON dbjobs.attempts;
ALTER TABLE dbjobs.gaps DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.gaps;
DROP POLICY IF EXISTS every ON dbjobs.gaps;
DROP POLICY IF EXISTS read ON dbjobs.gaps;
ALTER TABLE dbjobs.pauses DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.pauses;
DROP POLICY IF EXISTS every ON dbjobs.pauses;
DROP POLICY IF EXISTS read ON dbjobs.pauses;
DROP POLICY IF EXISTS shared ON dbjobs.pauses;
ALTER TABLE dbjobs.changes DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.changes;
DROP POLICY IF EXISTS every ON dbjobs.changes;
DROP POLICY IF EXISTS read ON dbjobs.changes;
DROP POLICY IF EXISTS add ON dbjobs.changes;
ALTER TABLE dbjobs.ticks DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.ticks;
DROP POLICY IF EXISTS every ON dbjobs.ticks;
DROP POLICY IF EXISTS read ON dbjobs.ticks;
ALTER TABLE dbjobs.installation DISABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.installation;
DROP POLICY IF EXISTS every ON dbjobs.installation;
DROP POLICY IF EXISTS read ON dbjobs.installation;
DROP INDEX IF EXISTS dbjobs.jobs_owner;

DO $$ DECLARE v text; BEGIN
  IF pg_catalog.current_setting('server_version_num')::int >= 150000 THEN
    FOR v IN SELECT c.relname FROM pg_catalog.pg_class c WHERE c.relnamespace = 'dbjobs'::regnamespace AND c.relkind = 'v' LOOP
      EXECUTE pg_catalog.format('ALTER VIEW dbjobs.%I RESET (security_invoker)', v)
    ; END LOOP
  ; END IF
; END $$;
