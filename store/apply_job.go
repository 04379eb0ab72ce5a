package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// batchSize is how many jobs apply reads, compares and writes at a time. It bounds the memory. It also bounds the
// number of statements: a batch needs the same number however many jobs it has, as long as their rows fit a document
// (see documentSize).
const batchSize = 1000

// edit is a job as it should be, and as it is.
type edit struct {
	job     Job
	old     *Job // without an id: the job does not exist
	differs bool // it is known already that they differ
	renamed bool // its hooks have other names than the definition gives
}

// jobs applies jobs in two rounds, so that a job may run after another one that stands further down. The first round
// inserts the rows of new jobs, and finds out which of the other jobs change.
func (a *applier) jobs(ctx context.Context, jobs []Job) error {
	var edits []*edit
	twice := a.twice()
	done := 0
	progress := func(n int) {
		if done += n; a.o.Progress != nil {
			a.o.Progress(done, len(jobs))
		}
	}
	parts := slices.Collect(slices.Chunk(jobs, batchSize))
	next := a.look(ctx, parts, 0)
	for i, part := range parts {
		now := <-next
		next = a.look(ctx, parts, i+1)
		changed, err := a.compare(now, twice)
		now = <-next // the session has read all that it needs: it may write
		next <- now
		if err == nil {
			err = a.insert(ctx, changed)
		}
		if errors.Is(err, ErrDenied) && len(a.refused) > 0 { // row security refuses a job whose group is not there for the login
			return a.mistakes()
		}
		if err != nil {
			return err
		}
		edits = append(edits, changed...)
		progress(len(part) - len(changed))
	}
	if err := a.names(edits); err != nil {
		return err
	}
	if err := a.circles(edits); err != nil {
		return err
	}
	for part := range slices.Chunk(edits, batchSize) {
		if err := a.batch(ctx, part); err != nil {
			return err
		}
		progress(len(part))
	}
	return nil
}

// names finds the jobs that jobs name: those after which they run, and their hooks. It returns all mistakes together,
// also those that were found before.
func (a *applier) names(edits []*edit) error {
	for _, e := range edits {
		if err := a.after(&e.job); err != nil {
			a.refuse(err)
		}
		given := e.job.On
		a.hooks(&e.job)
		if e.renamed = given != e.job.On; a.dry.on {
			a.dry.defined[e.job.ID] = &e.job
		}
	}
	return a.mistakes()
}

// mistakes returns all mistakes that were kept.
func (a *applier) mistakes() error {
	all := slices.Clone(a.refused)
	if more := a.refusals - len(all); more > 0 {
		all = append(all, fmt.Errorf("and %d more such mistakes", more))
	}
	return errors.Join(all...)
}

// refuse keeps a mistake, to return it with the others.
func (a *applier) refuse(err error) {
	const most = 100
	if a.refusals++; a.refusals <= most {
		a.refused = append(a.refused, err)
	}
}

// fullName returns the name of a job that may not have its owner yet.
func (a *applier) fullName(j Job) string {
	return FullName(cmp.Or(j.Owner, a.login), j.Name)
}

// looked is a batch of jobs, and what the database has of them.
type looked struct {
	given []fitting
	old   []Job
	err   error
}

// look reads what the database has of a batch, and checks each job of the batch separately, while the batch before is
// compared. After the last batch it returns nothing.
func (a *applier) look(ctx context.Context, parts [][]Job, i int) chan looked {
	done := make(chan looked, 1)
	if i == len(parts) {
		done <- looked{}
		return done
	}
	var there []*Job
	for j := range parts[i] {
		if k := a.known.byName[a.fullName(parts[i][j])]; k != nil && !a.o.CreateOnly {
			there = append(there, k)
		}
	}
	fit := make(chan []fitting, 1)
	go func() { fit <- a.fit(parts[i]) }()
	go func() {
		old, err := a.definitions(ctx, there)
		done <- looked{<-fit, old, err}
	}()
	return done
}

// compare leaves out the jobs that are already as they should be.
func (a *applier) compare(now looked, twice func(j Job, asked string, known bool) error) ([]*edit, error) {
	if now.err != nil {
		return nil, now.err
	}
	old := make(map[string]*Job, len(now.old))
	for i := range now.old {
		old[now.old[i].FullName()] = &now.old[i]
	}
	var edits []*edit
	for i := range now.given {
		if err := now.given[i].err; err != nil {
			a.refuse(err)
			continue
		}
		e, err := a.check(&now.given[i], old, twice)
		if err != nil {
			return nil, err
		}
		if e != nil {
			edits = append(edits, e)
		}
	}
	return edits, nil
}

// fitting is a job as it would be stored, or the reason why it cannot be stored.
type fitting struct {
	job   Job
	asked string // the owner that was given
	err   error
}

// fit checks each job separately, without the database.
func (a *applier) fit(jobs []Job) []fitting {
	list := make([]fitting, len(jobs))
	for i, j := range jobs {
		asked := j.Owner
		j.Owner, j.Manifest = cmp.Or(j.Owner, a.login), a.o.Manifest
		var err error
		if !a.s.db.Engine().KnowsLogins && j.Owner != "" {
			err = &FieldError{"job " + j.Name, "owner", "SQLite has no logins; remove this key"}
		} else if !a.checked {
			j.Normalize()
			err = j.Validate()
		} else if asked == "" {
			err = firstError("job "+j.FullName(), check{"owner", optionalName(j.Owner)})
		}
		list[i] = fitting{j, asked, err}
	}
	return list
}

// check refuses an invalid job. It returns nil if nothing has to be done for the job.
func (a *applier) check(given *fitting, there map[string]*Job, twice func(j Job, asked string, known bool) error) (*edit, error) {
	j := &given.job
	if _, ok := a.groups[j.Group]; j.Group != "" && !ok {
		a.refuse(&FieldError{"job " + j.FullName(), "group", fmt.Sprintf("there is no group %q; add it to a manifest: groups: {%s: 1}", j.Group, j.Group)})
	}
	known := a.known.byName[j.FullName()] != nil
	if err := twice(*j, given.asked, known); err != nil {
		a.refuse(err)
		return nil, nil
	}
	if known && a.o.CreateOnly {
		return nil, fmt.Errorf("job %s: %w", j.FullName(), ErrExists)
	}
	old := there[j.FullName()]
	if old == nil {
		old = &Job{}
	}
	if err := a.mayTake("job "+j.FullName(), old.Manifest); err != nil {
		a.refuse(err)
		return nil, nil
	}
	if !known && !a.o.CreateOnly && a.done.has(*j) {
		a.changes = append(a.changes, Change{At: a.now, By: a.o.By, Kind: "job", Subject: j.FullName(), Action: "done"})
		return nil, nil
	}
	if err := cmp.Or(a.start(j, old), a.ownRule(j, old)); err != nil {
		a.refuse(err)
		return nil, nil
	}
	j.ID = old.ID
	if len(j.After) > 0 || j.On != (Hooks{}) { // which jobs those are is found out when all jobs exist
		return &edit{job: *j, old: old}, nil
	}
	if changed(old, j) {
		return &edit{job: *j, old: old, differs: true}, nil
	}
	return nil, nil
}

// ownRule notes in a job's own rule when the database got it, and refuses a rule that has no time from then on.
func (a *applier) ownRule(j, old *Job) error {
	if j.Own == nil {
		return nil
	}
	j.Own.madeAs(old.Own)
	return a.observes("job "+j.FullName(), *j, *j.Own)
}

// changed reports whether a job is not as it should be. Its predecessor may be another job of the same name.
func changed(old, j *Job) bool {
	return old.ID == 0 || old.fault != "" || old.lostLink || !slices.Equal(old.After, j.After) || !sameJob(old, j)
}

// twice refuses to make a job that the same manifest has made for another login: both jobs would run. A file without a name, such
// as an export, has the jobs that no manifest owns. If the file names the owner of the job, the job is made anyway.
func (a *applier) twice() func(j Job, asked string, known bool) error {
	owners := map[string][]string{} // by the jobs' names
	for _, j := range a.known.owned {
		owners[j.Name] = append(owners[j.Name], j.Owner)
	}
	has := fmt.Sprintf("the manifest %q has this job already, for the login", a.o.Manifest)
	if a.o.Manifest == "" {
		for _, j := range a.known.byName {
			if j.Manifest == "" {
				owners[j.Name] = append(owners[j.Name], j.Owner)
			}
		}
		has = "this job is there already, in no manifest, for the login"
	}
	return func(j Job, asked string, known bool) error {
		have := owners[j.Name]
		if known || asked != "" || len(have) == 0 || a.o.CreateOnly {
			return nil
		}
		slices.Sort(have)
		names := strings.Join(have, " and ")
		return &FieldError{"job " + j.Name, "owner", fmt.Sprintf("%s %s; a second job for %s would run beside it; "+
			"apply as the login that you mean, or add owner: %s to change its job, or owner: %[3]s to create another one", has, names, a.login, strings.Join(have, " or owner: "))}
	}
}

// start resolves the start schedule of a job that is new, or whose start has changed.
func (a *applier) start(j, old *Job) (err error) {
	switch {
	case j.Start == "":
		return nil
	case old.ID != 0 && j.KeepsStart(old, a.now):
		j.NotBefore = old.NotBefore
	case a.o.Start == nil:
		return nil
	default:
		if j.NotBefore, err = a.o.Start(j.Start, j.StartZone, a.now); err != nil {
			return &FieldError{"job " + j.FullName(), "start", err.Error()}
		}
	}
	return j.ValidatePolicies() // not_after may lie before it
}

// KeepsStart reports whether the instant to which the start schedule was resolved stays as it is. It does so as long as the
// start is the same. Its zone, which may be that of the file, counts until that instant: a job that has begun goes on.
func (j *Job) KeepsStart(old *Job, now time.Time) bool {
	begun := !old.NotBefore.IsZero() && !old.NotBefore.After(now)
	return j.Start == old.Start && (j.StartZone == old.StartZone || begun)
}

// insert inserts the rows of the jobs that do not exist, and finds their ids.
func (a *applier) insert(ctx context.Context, edits []*edit) error {
	var rows []row
	var names []string
	added := map[string]*Job{}
	for i := range edits {
		j := &edits[i].job
		if j.ID != 0 {
			continue
		}
		if added[j.FullName()] != nil {
			return &FieldError{"job " + j.FullName(), "name", "is there twice"}
		}
		added[j.FullName()] = j
		rows, names = append(rows, jobRow(a.s.Engine(), j)), append(names, j.Name)
	}
	if len(rows) == 0 {
		return nil
	}
	if a.dry.on {
		for _, j := range added {
			j.ID = a.dry.id()
			a.known.add(&Job{ID: j.ID, Owner: j.Owner, Name: j.Name, Manifest: j.Manifest})
		}
		return nil
	}
	if err := a.write(ctx, "insert_jobs", rows); err != nil {
		return err
	}
	slices.Sort(names)
	return a.s.jobsNamed(ctx, a.tx, slices.Compact(names), func(k *Job) {
		if j := added[k.FullName()]; j != nil {
			j.ID = k.ID
			a.known.add(k)
		}
	})
}
