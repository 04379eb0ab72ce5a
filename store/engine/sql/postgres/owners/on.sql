-- Rows belong to logins, for `dbjobs migrate --owners`. Each table has row security, by who has logged in (session_user):
-- SET ROLE does not change that, and in a function of a definer (current_user) nothing is anybody's. Members of dbjobs_admin
-- and of dbjobs_ticker see and write all, so only they give a job another owner; members of dbjobs_reader see all. Row
-- security does not bind a superuser, a login with BYPASSRLS, and the login that owns the tables.
--
-- Each statement ends with a semicolon at the end of a line, and can be run twice.

DO $$ DECLARE r text; BEGIN
  FOREACH r IN ARRAY ARRAY['dbjobs_admin', 'dbjobs_ticker', 'dbjobs_reader'] LOOP
    IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = r) THEN
      BEGIN
        EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', r) /* a role is the server's, and another database may make it now */
        ; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; WHEN insufficient_privilege THEN
          RAISE EXCEPTION 'the role % is missing, and this login may make no role', r USING ERRCODE = '42501', HINT = 'a superuser has to run: CREATE ROLE ' || r
      ; END
    ; END IF
  ; END LOOP
; END $$;

-- What policies look up: the jobs of a login.
CREATE INDEX IF NOT EXISTS jobs_owner ON dbjobs.jobs (owner);

-- A hook, and the cap of a group, are of the same owner.
ALTER TABLE dbjobs.jobs ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.jobs;
CREATE POLICY own ON dbjobs.jobs USING (owner = session_user::text AND owner = current_user) WITH CHECK (owner = session_user::text AND owner = current_user
    AND (group_name IS NULL OR group_name IN (SELECT name FROM dbjobs.groups))
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(ARRAY[on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused]) AS h(hook)
      WHERE pg_catalog.strpos(h.hook, '/') > 0 AND pg_catalog.split_part(h.hook, '/', 1) <> session_user));

ALTER TABLE dbjobs.steps ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.steps;
CREATE POLICY own ON dbjobs.steps USING (job_id IN (SELECT id FROM dbjobs.jobs)) WITH CHECK (job_id IN (SELECT id FROM dbjobs.jobs));
-- The own rule of a job is the job's.
ALTER TABLE dbjobs.schedules ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.schedules;
CREATE POLICY own ON dbjobs.schedules USING ((job_id IS NULL AND owner = session_user::text AND owner = current_user) OR job_id IN (SELECT id FROM dbjobs.jobs)) WITH CHECK ((calendar = '' OR calendar IN (SELECT name FROM dbjobs.calendars)) AND ((job_id IS NULL AND owner = session_user::text AND owner = current_user) OR job_id IN (SELECT id FROM dbjobs.jobs)));

ALTER TABLE dbjobs.calendars ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.calendars;
CREATE POLICY own ON dbjobs.calendars USING (owner = session_user::text AND owner = current_user) WITH CHECK (owner = session_user::text AND owner = current_user);

ALTER TABLE dbjobs.groups ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.groups;
CREATE POLICY own ON dbjobs.groups USING (owner = session_user::text AND owner = current_user) WITH CHECK (owner = session_user::text AND owner = current_user);

ALTER TABLE dbjobs.group_plans ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.group_plans;
CREATE POLICY own ON dbjobs.group_plans USING (name IN (SELECT name FROM dbjobs.groups)) WITH CHECK (name IN (SELECT name FROM dbjobs.groups));

ALTER TABLE dbjobs.job_schedules ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.job_schedules;
CREATE POLICY own ON dbjobs.job_schedules USING (job_id IN (SELECT id FROM dbjobs.jobs)) WITH CHECK (job_id IN (SELECT id FROM dbjobs.jobs) AND schedule_id IN (SELECT id FROM dbjobs.schedules));

ALTER TABLE dbjobs.job_after ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.job_after;
CREATE POLICY own ON dbjobs.job_after USING (job_id IN (SELECT id FROM dbjobs.jobs)) WITH CHECK (job_id IN (SELECT id FROM dbjobs.jobs) AND after_job_id IN (SELECT id FROM dbjobs.jobs));

ALTER TABLE dbjobs.job_ends ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.job_ends;
CREATE POLICY own ON dbjobs.job_ends USING (job_id IN (SELECT id FROM dbjobs.jobs)) WITH CHECK (job_id IN (SELECT id FROM dbjobs.jobs) AND after_job_id IN (SELECT id FROM dbjobs.jobs));

ALTER TABLE dbjobs.plans ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.plans;
CREATE POLICY own ON dbjobs.plans USING (job_id IN (SELECT id FROM dbjobs.jobs)) WITH CHECK (job_id IN (SELECT id FROM dbjobs.jobs) AND owner = session_user::text AND owner = current_user);

ALTER TABLE dbjobs.plan_rules ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.plan_rules;
CREATE POLICY own ON dbjobs.plan_rules USING (job_id IN (SELECT id FROM dbjobs.jobs)) WITH CHECK (job_id IN (SELECT id FROM dbjobs.jobs));

ALTER TABLE dbjobs.runs ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.runs;
CREATE POLICY own ON dbjobs.runs USING (job_id IN (SELECT id FROM dbjobs.jobs)) WITH CHECK (job_id IN (SELECT id FROM dbjobs.jobs));

ALTER TABLE dbjobs.attempts ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.attempts;
CREATE POLICY own ON dbjobs.attempts USING (EXISTS (SELECT 1 FROM dbjobs.runs r WHERE r.id = run_id)) WITH CHECK (EXISTS (SELECT 1 FROM dbjobs.runs r WHERE r.id = run_id));

ALTER TABLE dbjobs.gaps ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.gaps;
CREATE POLICY own ON dbjobs.gaps USING (job_id IN (SELECT id FROM dbjobs.jobs)) WITH CHECK (job_id IN (SELECT id FROM dbjobs.jobs));

-- A tag, and everything, may be paused by an administrator only, since they are not of one owner. All see it.
ALTER TABLE dbjobs.pauses ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.pauses;
CREATE POLICY own ON dbjobs.pauses USING ((scope = 'job' AND subject_id IN (SELECT id FROM dbjobs.jobs)) OR (scope = 'schedule' AND subject_id IN (SELECT id FROM dbjobs.schedules)) OR (scope = 'owner' AND subject = session_user AND subject = current_user)) WITH CHECK ((scope = 'job' AND subject_id IN (SELECT id FROM dbjobs.jobs)) OR (scope = 'schedule' AND subject_id IN (SELECT id FROM dbjobs.schedules)) OR (scope = 'owner' AND subject = session_user AND subject = current_user));
DROP POLICY IF EXISTS shared ON dbjobs.pauses;
CREATE POLICY shared ON dbjobs.pauses FOR SELECT USING (scope IN ('tag', 'all'));

-- The log of changes says of a login only what that has done, and is never rewritten. The owner of a job learns who changed it.
-- An entry that is older than 400 days may go: a pass of the owner deletes those that nobody needs (Store.Forget). Renames stay.
-- What a pass decides by itself is of "dbjobs itself", also in a tick of the owner.
ALTER TABLE dbjobs.changes ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.changes;
CREATE POLICY own ON dbjobs.changes FOR SELECT USING ((changed_by = session_user AND changed_by = current_user) OR (kind = 'job' AND subject_id IN (SELECT id FROM dbjobs.jobs)));
DROP POLICY IF EXISTS add ON dbjobs.changes;
CREATE POLICY add ON dbjobs.changes FOR INSERT WITH CHECK ((changed_by = session_user AND changed_by = current_user
  AND (kind <> 'job' OR subject_id IS NULL OR subject_id IN (SELECT id FROM dbjobs.jobs)))
  OR (changed_by = 'dbjobs itself' AND kind = 'job' AND subject_id IN (SELECT id FROM dbjobs.jobs)));
DROP POLICY IF EXISTS forget ON dbjobs.changes;
CREATE POLICY forget ON dbjobs.changes FOR DELETE USING (changed_at < pg_catalog.statement_timestamp() - interval '9600 hours' AND action <> 'rename'
  AND ((changed_by = session_user AND changed_by = current_user) OR (kind = 'job' AND subject_id IN (SELECT id FROM dbjobs.jobs))));

-- A login may run ticks of its own, under its name.
ALTER TABLE dbjobs.ticks ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.ticks;
CREATE POLICY own ON dbjobs.ticks USING (name = session_user AND name = current_user);

-- All see what the database holds, and may lock that, which takes UPDATE of one column; what it says stays.
ALTER TABLE dbjobs.installation ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own ON dbjobs.installation;
CREATE POLICY own ON dbjobs.installation FOR SELECT USING (true);
DROP POLICY IF EXISTS hold ON dbjobs.installation;
CREATE POLICY hold ON dbjobs.installation FOR UPDATE USING (true) WITH CHECK (false);

-- A row may refer to what belongs to another login: an administrator can connect the two, and owners can be switched on later.
-- A pass of one login parks such a job, and has to write its marks, or it would fail with every job of that login. So the
-- policies own hold for new rows, and where a row that is there gets another reference, a trigger looks whether the login
-- sees it. What the row had before may stay, also beside another reference. A group and a calendar are found by name: a trigger
-- locks the one that is named, also for a new row, because in an old snapshot a name may still be that of the login's own.
CREATE OR REPLACE FUNCTION dbjobs.refuse_reference() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  seen boolean
; back boolean := false
; BEGIN
  IF NOT row_security_active('dbjobs.jobs') OR pg_has_role('dbjobs_admin', 'USAGE') OR pg_has_role('dbjobs_ticker', 'USAGE') THEN
    RETURN NEW
  ; ELSIF TG_TABLE_NAME = 'jobs' THEN
    back := OLD.removed_at IS NOT NULL /* what a removed job names may be another owner's by now */
  ; seen := (NEW.group_name IS NULL OR NOT back AND NEW.group_name IS NOT DISTINCT FROM OLD.group_name OR NEW.group_name IN (SELECT name FROM dbjobs.groups))
      AND NOT EXISTS (SELECT 1 FROM unnest(ARRAY[NEW.on_failed, NEW.on_recovered, NEW.on_missed, NEW.on_late, NEW.on_lost, NEW.on_parked, NEW.on_paused], ARRAY[OLD.on_failed, OLD.on_recovered, OLD.on_missed, OLD.on_late, OLD.on_lost, OLD.on_parked, OLD.on_paused]) AS h(hook, was)
        WHERE (back OR h.hook IS DISTINCT FROM h.was) AND strpos(h.hook, '/') > 0 AND split_part(h.hook, '/', 1) <> session_user)
  ; IF seen AND NEW.group_name IS NOT NULL AND (back OR NEW.group_name IS DISTINCT FROM OLD.group_name) THEN
      PERFORM g.name FROM dbjobs.groups g WHERE g.name = NEW.group_name FOR KEY SHARE
    ; seen := FOUND
    ; END IF
  ; ELSIF TG_TABLE_NAME = 'schedules' THEN
    seen := NEW.calendar = '' OR NEW.calendar IN (SELECT name FROM dbjobs.calendars)
  ; IF seen AND NEW.calendar <> '' THEN
      PERFORM c.name FROM dbjobs.calendars c WHERE c.name = NEW.calendar FOR KEY SHARE
    ; seen := FOUND
    ; END IF
  ; ELSIF TG_TABLE_NAME = 'job_schedules' THEN
    seen := NEW.schedule_id IN (SELECT id FROM dbjobs.schedules)
  ; ELSE
    seen := NEW.after_job_id IN (SELECT id FROM dbjobs.jobs)
  ; END IF
  ; IF NOT seen THEN
    RAISE EXCEPTION 'new row violates row-level security policy for table "%"', TG_TABLE_NAME USING ERRCODE = '42501'
  ; END IF
  ; RETURN NEW
; END $$;

COMMENT ON FUNCTION dbjobs.refuse_reference() IS 'for triggers: with owners, a row gets no reference to what its login does not see';
DROP POLICY IF EXISTS kept ON dbjobs.jobs;
CREATE POLICY kept ON dbjobs.jobs FOR UPDATE USING (owner = session_user::text AND owner = current_user) WITH CHECK (owner = session_user::text AND owner = current_user);
DROP TRIGGER IF EXISTS refuse_reference ON dbjobs.jobs;
CREATE TRIGGER refuse_reference BEFORE UPDATE OF group_name, on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused, removed_at ON dbjobs.jobs FOR EACH ROW WHEN (OLD.removed_at IS NOT NULL AND NEW.removed_at IS NULL OR (OLD.group_name, OLD.on_failed, OLD.on_recovered, OLD.on_missed, OLD.on_late, OLD.on_lost, OLD.on_parked, OLD.on_paused) IS DISTINCT FROM (NEW.group_name, NEW.on_failed, NEW.on_recovered, NEW.on_missed, NEW.on_late, NEW.on_lost, NEW.on_parked, NEW.on_paused)) EXECUTE FUNCTION dbjobs.refuse_reference();
DROP POLICY IF EXISTS kept ON dbjobs.schedules;
CREATE POLICY kept ON dbjobs.schedules FOR UPDATE USING ((job_id IS NULL AND owner = session_user::text AND owner = current_user) OR job_id IN (SELECT id FROM dbjobs.jobs)) WITH CHECK ((job_id IS NULL AND owner = session_user::text AND owner = current_user) OR job_id IN (SELECT id FROM dbjobs.jobs));
DROP TRIGGER IF EXISTS refuse_reference ON dbjobs.schedules;
CREATE TRIGGER refuse_reference BEFORE UPDATE OF calendar ON dbjobs.schedules FOR EACH ROW WHEN (OLD.calendar IS DISTINCT FROM NEW.calendar) EXECUTE FUNCTION dbjobs.refuse_reference();
DROP TRIGGER IF EXISTS refuse_old_reference ON dbjobs.jobs;
CREATE TRIGGER refuse_old_reference BEFORE INSERT ON dbjobs.jobs FOR EACH ROW WHEN (NEW.group_name IS NOT NULL AND pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.refuse_reference();
DROP TRIGGER IF EXISTS refuse_old_reference ON dbjobs.schedules;
CREATE TRIGGER refuse_old_reference BEFORE INSERT ON dbjobs.schedules FOR EACH ROW WHEN (NEW.calendar <> '' AND pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.refuse_reference();
DROP POLICY IF EXISTS kept ON dbjobs.job_schedules;
CREATE POLICY kept ON dbjobs.job_schedules FOR UPDATE USING (job_id IN (SELECT id FROM dbjobs.jobs)) WITH CHECK (job_id IN (SELECT id FROM dbjobs.jobs));
DROP TRIGGER IF EXISTS refuse_reference ON dbjobs.job_schedules;
CREATE TRIGGER refuse_reference BEFORE UPDATE OF job_id, schedule_id ON dbjobs.job_schedules FOR EACH ROW WHEN ((OLD.job_id, OLD.schedule_id) IS DISTINCT FROM (NEW.job_id, NEW.schedule_id)) EXECUTE FUNCTION dbjobs.refuse_reference();
DROP POLICY IF EXISTS kept ON dbjobs.job_after;
CREATE POLICY kept ON dbjobs.job_after FOR UPDATE USING (job_id IN (SELECT id FROM dbjobs.jobs)) WITH CHECK (job_id IN (SELECT id FROM dbjobs.jobs));
DROP TRIGGER IF EXISTS refuse_reference ON dbjobs.job_after;
CREATE TRIGGER refuse_reference BEFORE UPDATE OF job_id, after_job_id ON dbjobs.job_after FOR EACH ROW WHEN ((OLD.job_id, OLD.after_job_id) IS DISTINCT FROM (NEW.job_id, NEW.after_job_id)) EXECUTE FUNCTION dbjobs.refuse_reference();
DROP POLICY IF EXISTS kept ON dbjobs.job_ends;
CREATE POLICY kept ON dbjobs.job_ends FOR UPDATE USING (job_id IN (SELECT id FROM dbjobs.jobs)) WITH CHECK (job_id IN (SELECT id FROM dbjobs.jobs));
DROP TRIGGER IF EXISTS refuse_reference ON dbjobs.job_ends;
CREATE TRIGGER refuse_reference BEFORE UPDATE OF job_id, after_job_id ON dbjobs.job_ends FOR EACH ROW WHEN ((OLD.job_id, OLD.after_job_id) IS DISTINCT FROM (NEW.job_id, NEW.after_job_id)) EXECUTE FUNCTION dbjobs.refuse_reference();

-- Groups and calendars are found by name, and a job keeps the name of one that is gone. So a new one gets no name that a job of
-- another owner has: its runs would take places in the group, and its plan have the days of the calendar. A job that is removed,
-- and has no run left, takes none. The function sees all rows, and looks once the name is taken: the session that gave it up has
-- committed.
CREATE OR REPLACE FUNCTION dbjobs.refuse_name() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  named boolean
; BEGIN
  IF TG_TABLE_NAME = 'groups' THEN
    named := EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.group_name = NEW.name AND j.owner <> session_user::text
      AND (j.removed_at IS NULL OR EXISTS (SELECT 1 FROM dbjobs.runs r WHERE r.settled_at IS NULL AND r.job_id = j.id)))
  ; ELSE
    named := EXISTS (SELECT 1 FROM dbjobs.schedules s LEFT JOIN dbjobs.jobs j ON j.id = s.job_id WHERE s.calendar = NEW.name AND s.calendar <> '' AND coalesce(j.owner, s.owner) <> session_user::text)
  ; END IF
  ; IF named THEN
    RAISE EXCEPTION 'a job or schedule of another owner has the name "%" for one of its %; choose another one', NEW.name, TG_TABLE_NAME USING ERRCODE = '42501'
  ; END IF
  ; RETURN NEW
; END $$;

COMMENT ON FUNCTION dbjobs.refuse_name() IS 'for triggers: with owners, a group or calendar gets no name that a job of another owner has';
DROP TRIGGER IF EXISTS refuse_name ON dbjobs.groups;
CREATE TRIGGER refuse_name AFTER INSERT OR UPDATE OF name ON dbjobs.groups FOR EACH ROW WHEN (pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.refuse_name();
DROP TRIGGER IF EXISTS refuse_name ON dbjobs.calendars;
CREATE TRIGGER refuse_name AFTER INSERT OR UPDATE OF name ON dbjobs.calendars FOR EACH ROW WHEN (pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.refuse_name();

-- An owner does not see which jobs of others use what belongs to it. A function that sees all rows keeps that, and its name where
-- others have that: groups, calendars and hooks are found by name. A job that removes itself when it is done goes all the same.
CREATE OR REPLACE FUNCTION dbjobs.refuse_removal() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  what text
; used boolean
; BEGIN
  IF TG_TABLE_NAME = 'schedules' THEN
    what := 'schedule'
  ; used := EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.jobs j ON j.id = l.job_id WHERE l.schedule_id = OLD.id AND j.removed_at IS NULL AND j.owner <> session_user::text)
  ; ELSIF TG_TABLE_NAME = 'calendars' THEN
    what := 'calendar'
  ; used := EXISTS (SELECT 1 FROM dbjobs.schedules s LEFT JOIN dbjobs.jobs j ON j.id = s.job_id WHERE s.calendar = OLD.name AND s.calendar <> '' AND coalesce(j.owner, s.owner) <> session_user::text)
  ; ELSIF TG_TABLE_NAME = 'groups' THEN
    what := 'group'
  ; used := EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.group_name = OLD.name AND j.removed_at IS NULL AND j.owner <> session_user::text)
  ; ELSE
    what := 'job'
  ; used := TG_NAME <> 'refuse_renaming' AND EXISTS (SELECT 1 FROM dbjobs.job_after a JOIN dbjobs.jobs f ON f.id = a.job_id WHERE a.after_job_id = OLD.id AND f.removed_at IS NULL AND f.owner <> session_user::text)
      OR EXISTS (SELECT 1 FROM dbjobs.jobs f WHERE f.removed_at IS NULL AND f.owner <> session_user::text AND OLD.owner || '/' || OLD.name IN (f.on_failed, f.on_recovered, f.on_missed, f.on_late, f.on_lost, f.on_parked, f.on_paused))
  ; END IF
  ; IF used THEN
    RAISE EXCEPTION '% "%" cannot be removed or renamed: a job of another owner uses it, which this login does not see; ask an administrator', what, OLD.name USING ERRCODE = 'JB004'
  ; ELSIF TG_OP = 'DELETE' THEN
    RETURN OLD
  ; END IF
  ; RETURN NEW
; END $$;

COMMENT ON FUNCTION dbjobs.refuse_removal() IS 'for triggers: with owners, nothing goes that a job of another owner uses';
DROP TRIGGER IF EXISTS refuse_removal ON dbjobs.schedules;
CREATE TRIGGER refuse_removal BEFORE DELETE ON dbjobs.schedules FOR EACH ROW WHEN (OLD.job_id IS NULL AND pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.refuse_removal();
DROP TRIGGER IF EXISTS refuse_removal ON dbjobs.calendars;
CREATE TRIGGER refuse_removal BEFORE DELETE ON dbjobs.calendars FOR EACH ROW WHEN (pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.refuse_removal();
DROP TRIGGER IF EXISTS refuse_removal ON dbjobs.jobs;
CREATE TRIGGER refuse_removal BEFORE UPDATE OF removed_at ON dbjobs.jobs FOR EACH ROW WHEN (OLD.removed_at IS NULL AND NEW.removed_at IS NOT NULL AND NOT OLD.remove_when_done AND pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.refuse_removal();
DROP TRIGGER IF EXISTS refuse_deletion ON dbjobs.jobs;
CREATE TRIGGER refuse_deletion BEFORE DELETE ON dbjobs.jobs FOR EACH ROW WHEN (OLD.removed_at IS NULL AND pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.refuse_removal();
DROP TRIGGER IF EXISTS refuse_removal ON dbjobs.groups;
CREATE TRIGGER refuse_removal BEFORE DELETE ON dbjobs.groups FOR EACH ROW WHEN (pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.refuse_removal();
DROP TRIGGER IF EXISTS refuse_renaming ON dbjobs.calendars;
CREATE TRIGGER refuse_renaming BEFORE UPDATE OF name ON dbjobs.calendars FOR EACH ROW WHEN (OLD.name <> NEW.name AND pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.refuse_removal();
DROP TRIGGER IF EXISTS refuse_renaming ON dbjobs.groups;
CREATE TRIGGER refuse_renaming BEFORE UPDATE OF name ON dbjobs.groups FOR EACH ROW WHEN (OLD.name <> NEW.name AND pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.refuse_removal();
DROP TRIGGER IF EXISTS refuse_renaming ON dbjobs.jobs;
CREATE TRIGGER refuse_renaming BEFORE UPDATE OF name ON dbjobs.jobs FOR EACH ROW WHEN (OLD.name <> NEW.name AND pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.refuse_removal();

-- A session tells the new days of a calendar to the schedules that it sees, and then marks the calendar as seen. Where schedules of
-- other owners have the calendar, it stays unseen until a session tells them that sees all.
CREATE OR REPLACE FUNCTION dbjobs.leave_unseen() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN
  IF EXISTS (SELECT 1 FROM dbjobs.schedules s LEFT JOIN dbjobs.jobs j ON j.id = s.job_id WHERE s.calendar = NEW.name AND s.calendar <> '' AND coalesce(j.owner, s.owner) <> session_user::text) THEN
    NEW.planned := NULL
  ; END IF
  ; RETURN NEW
; END $$;

COMMENT ON FUNCTION dbjobs.leave_unseen() IS 'for triggers: with owners, a calendar is seen when the schedules of all owners know its days';
DROP TRIGGER IF EXISTS leave_unseen ON dbjobs.calendars;
CREATE TRIGGER leave_unseen BEFORE UPDATE OF planned ON dbjobs.calendars FOR EACH ROW WHEN (pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.leave_unseen();

-- A pass of one login counts the runs of its own jobs in a group, and has the lock of the group. Where runs of other owners have places
-- there, too, a run that finds none waits for the group, as the pass would have decided. Nor does it ask for the group again, or the
-- pass would decide for it without an end. Only a run that asks again has no other hold, and the ready_at that it had. Where the clock
-- has gone back before that instant, a decision about its job takes the hold away as well. It gets the hold back, and counts as
-- written: keep_back comes first, by its name, and keep_held then finds the hold.
CREATE OR REPLACE FUNCTION dbjobs.keep_cap() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  named text
; cap bigint
; taken bigint
; others bigint
; BEGIN
  SELECT g.name, g.max_running INTO named, cap FROM dbjobs.jobs j JOIN dbjobs.groups g ON g.name = j.group_name WHERE j.id = NEW.job_id
  ; IF named IS NOT NULL THEN
    SELECT count(*), count(*) FILTER (WHERE j.owner <> session_user::text) INTO taken, others FROM dbjobs.jobs j JOIN dbjobs.runs r ON r.settled_at IS NULL AND r.job_id = j.id
    WHERE j.group_name = named AND r.id <> NEW.id AND (r.state IN ('queued', 'running') OR r.state = 'waiting' AND r.started_at IS NOT NULL)
  ; IF others > 0 AND taken >= cap THEN
      IF TG_NAME = 'keep_held' THEN
        RETURN NULL
      ; END IF
    ; NEW.state := 'waiting'
    ; NEW.held_by := 'group'
    ; END IF
  ; END IF
  ; RETURN NEW
; END $$;

COMMENT ON FUNCTION dbjobs.keep_cap() IS 'for triggers: with owners, a group counts the runs of all owners';
DROP TRIGGER IF EXISTS keep_cap ON dbjobs.runs;
CREATE TRIGGER keep_cap BEFORE INSERT OR UPDATE OF state ON dbjobs.runs FOR EACH ROW WHEN (NEW.state = 'queued' AND NEW.started_at IS NULL AND pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.keep_cap();
DROP TRIGGER IF EXISTS keep_back ON dbjobs.runs;
CREATE TRIGGER keep_back BEFORE UPDATE OF state ON dbjobs.runs FOR EACH ROW WHEN (OLD.state = 'waiting' AND NEW.state = 'waiting' AND OLD.held_by = 'group' AND NEW.held_by IS NULL AND NEW.started_at IS NULL AND OLD.ready_at = NEW.ready_at AND pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.keep_cap();
DROP TRIGGER IF EXISTS keep_held ON dbjobs.runs;
CREATE TRIGGER keep_held BEFORE UPDATE OF held_by ON dbjobs.runs FOR EACH ROW WHEN (OLD.state = 'waiting' AND NEW.state = 'waiting' AND OLD.held_by = 'group' AND NEW.held_by IS NULL AND NEW.started_at IS NULL AND OLD.ready_at = NEW.ready_at AND pg_catalog.row_security_active('dbjobs.jobs') AND NOT pg_catalog.pg_has_role('dbjobs_admin', 'USAGE') AND NOT pg_catalog.pg_has_role('dbjobs_ticker', 'USAGE')) EXECUTE FUNCTION dbjobs.keep_cap();

-- The roles that reach all rows. A policy that is always true costs nothing.
DROP POLICY IF EXISTS every ON dbjobs.jobs;
CREATE POLICY every ON dbjobs.jobs TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.jobs;
CREATE POLICY read ON dbjobs.jobs FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.steps;
CREATE POLICY every ON dbjobs.steps TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.steps;
CREATE POLICY read ON dbjobs.steps FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.schedules;
CREATE POLICY every ON dbjobs.schedules TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.schedules;
CREATE POLICY read ON dbjobs.schedules FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.calendars;
CREATE POLICY every ON dbjobs.calendars TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.calendars;
CREATE POLICY read ON dbjobs.calendars FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.groups;
CREATE POLICY every ON dbjobs.groups TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.groups;
CREATE POLICY read ON dbjobs.groups FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.group_plans;
CREATE POLICY every ON dbjobs.group_plans TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.group_plans;
CREATE POLICY read ON dbjobs.group_plans FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.job_schedules;
CREATE POLICY every ON dbjobs.job_schedules TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.job_schedules;
CREATE POLICY read ON dbjobs.job_schedules FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.job_after;
CREATE POLICY every ON dbjobs.job_after TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.job_after;
CREATE POLICY read ON dbjobs.job_after FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.job_ends;
CREATE POLICY every ON dbjobs.job_ends TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.job_ends;
CREATE POLICY read ON dbjobs.job_ends FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.plans;
CREATE POLICY every ON dbjobs.plans TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.plans;
CREATE POLICY read ON dbjobs.plans FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.plan_rules;
CREATE POLICY every ON dbjobs.plan_rules TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.plan_rules;
CREATE POLICY read ON dbjobs.plan_rules FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.runs;
CREATE POLICY every ON dbjobs.runs TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.runs;
CREATE POLICY read ON dbjobs.runs FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.attempts;
CREATE POLICY every ON dbjobs.attempts TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.attempts;
CREATE POLICY read ON dbjobs.attempts FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.gaps;
CREATE POLICY every ON dbjobs.gaps TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.gaps;
CREATE POLICY read ON dbjobs.gaps FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.pauses;
CREATE POLICY every ON dbjobs.pauses TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.pauses;
CREATE POLICY read ON dbjobs.pauses FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.changes;
CREATE POLICY every ON dbjobs.changes TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.changes;
CREATE POLICY read ON dbjobs.changes FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.ticks;
CREATE POLICY every ON dbjobs.ticks TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.ticks;
CREATE POLICY read ON dbjobs.ticks FOR SELECT TO dbjobs_reader USING (true);
DROP POLICY IF EXISTS every ON dbjobs.installation;
CREATE POLICY every ON dbjobs.installation TO dbjobs_admin, dbjobs_ticker USING (true) WITH CHECK (true);
DROP POLICY IF EXISTS read ON dbjobs.installation;
CREATE POLICY read ON dbjobs.installation FOR SELECT TO dbjobs_reader USING (true);

UPDATE dbjobs.installation SET owners = true WHERE NOT owners;
