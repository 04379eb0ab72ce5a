package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/dbjobs/dbjobs/rules"
	"github.com/dbjobs/dbjobs/store"
)

// maxFiles is how many files one manifest may have.
const maxFiles = 1000

// Input is a file that Read reads.
type Input struct {
	Path  string    // as it was given; it names the file in problems
	In    io.Reader // source that is read instead of the file, such as standard input; nil: the file is read
	Alone bool      // as in Options, for this file
}

// Folder returns the files of a folder that belong to a manifest, sorted by name: all files whose names end
// with .yaml, .yml or .json, except hidden ones, and a JSON Schema for an editor. It does not look into folders below.
func Folder(path string) ([]Input, error) {
	entries, err := os.ReadDir(path) // sorted
	if err != nil {
		return nil, err
	}
	var list []Input
	for _, e := range entries {
		if isManifest(e.Name()) && !e.IsDir() {
			list = append(list, Input{Path: filepath.Join(path, e.Name())})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the folder %s has no file *.yaml, *.yml or *.json", path)
	}
	return list, nil
}

func isManifest(name string) bool {
	return !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, ".schema.json") && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

// Read reads a manifest of several files, and of the files that they include. A name means the same in all of
// them. The zone and the defaults of a file hold for that file, and for the files that it includes. If the
// manifest has problems, the error is an *Error, and the manifest has what could be read: its names may be checked, too.
// Any other error comes from reading.
func Read(inputs []Input, o Options) (*Manifest, error) {
	if o.Open == nil {
		o.Open = func(path string) (io.ReadCloser, error) { return os.Open(path) }
	}
	r := &reader{o: o, m: &Manifest{Name: o.Name}, names: map[string]bool{}, calendars: map[string]*rules.Calendar{}, defined: map[string]Problem{},
		left: MaxBytes, leftAlone: MaxBytesAlone}
	for _, in := range inputs {
		if err := r.load(in, nil, nil); err != nil {
			return nil, err
		}
	}
	for _, f := range r.files {
		f.readGroups(f.groups)
	}
	for _, f := range r.files {
		f.readCalendars(f.calendarsNode)
	}
	for _, f := range r.files {
		f.readSchedules(f.schedules)
	}
	for _, f := range r.files {
		f.readJobs(f.jobs)
	}
	for _, f := range r.files {
		r.m.problems = append(r.m.problems, f.problems...)
		r.m.references = append(r.m.references, f.references...)
	}
	r.m.places = r.defined
	for _, to := range r.m.references {
		r.m.places[to.at.Path] = to.at
	}
	for _, at := range r.m.rulePlaces {
		r.m.places[at.Path] = at
	}
	r.m.references = slices.DeleteFunc(r.m.references, r.defines)
	if len(r.m.problems) > 0 {
		return r.m, bounded(r.m.problems)
	}
	r.m.Checked = true
	return r.m, nil
}

// reader reads the files of one manifest.
type reader struct {
	o         Options
	m         *Manifest
	files     []*file
	names     map[string]bool // of the schedules, in all files
	calendars map[string]*rules.Calendar
	defined   map[string]Problem // where groups, schedules and jobs are, by path
	named     *Problem           // where the manifest has its name
	left      int                // bytes that may still be read
	leftAlone int                // those of them that may be of files from elsewhere
}

// load reads a file, except for its groups, schedules and jobs, because other files may name those. The file
// from includes it at the node at; if from is nil, no file includes it.
func (r *reader) load(in Input, from *file, at *yaml.Node) error {
	data, err := r.bytes(in)
	if err != nil {
		return fmt.Errorf("reading %s: %w", in.Path, err)
	}
	f := &file{decoder: &decoder{file: in.Path, length: len(data), env: r.o.Env}, m: r.m, now: r.o.Now, open: r.o.Open, names: r.names, calendars: r.calendars, defined: r.defined,
		from: from, at: at, real: realPath(in), alone: r.o.Alone || in.Alone}
	most, left := r.count(len(data), f.alone)
	if !f.alone {
		f.trusted = len(data)
	}
	if from != nil {
		f.zone, f.defaults, f.usual = from.zone, from.defaults, from.usual
	}
	r.files = append(r.files, f)
	if left < 0 {
		f.problem(nil, "", "longer than %d bytes%s", most, map[bool]string{true: ", with the files before it"}[len(data) <= most])
	} else if f.crowded(data) {
		f.problem(nil, "", "may hold more than %d values; split it into several files", f.mostMarks())
	} else if root := f.document(data); root != nil {
		f.fromEnvironment(root)
		return r.include(f, f.readTop(r, root))
	}
	return nil
}

// count counts the bytes of a file. It returns how many such files may have together, and how many they have left: the files
// from elsewhere have a bound of their own, within that of all.
func (r *reader) count(bytes int, alone bool) (most, left int) {
	r.left -= bytes
	if alone {
		if r.leftAlone -= bytes; r.leftAlone < 0 {
			return MaxBytesAlone, r.leftAlone
		}
	}
	return MaxBytes, r.left
}

func (r *reader) bytes(in Input) ([]byte, error) {
	from := in.In
	if from == nil {
		file, err := r.o.Open(in.Path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	return io.ReadAll(io.LimitReader(from, int64(r.left)+1))
}

// realPath returns one path for a file, whichever path leads to it. It returns an empty text for an input that
// is no file.
func realPath(in Input) string {
	if in.In != nil {
		return ""
	}
	path, err := filepath.Abs(in.Path)
	if real, ok := filepath.EvalSymlinks(path); err == nil && ok == nil {
		return real
	}
	return path
}

// include reads the files that a file names under include.
func (r *reader) include(f *file, n *yaml.Node) error {
	if n == nil {
		return nil
	}
	if f.alone {
		f.problem(n, "include", "files cannot be included here; put all into one manifest")
		return nil
	}
	for i, item := range f.items(n, "include") {
		path, pattern := fmt.Sprintf("include[%d]", i), ""
		if text(&pattern)(f.decoder, item, path); pattern == "" {
			continue
		}
		item = followed(item)
		list, err := included(f, pattern)
		if err != nil {
			f.problem(item, path, "%v", err)
			continue
		}
		for _, file := range list {
			if err := r.includeOne(f, file, item, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// included returns the files that a pattern means. The pattern begins in the folder of the file that includes
// them.
func included(f *file, pattern string) ([]string, error) {
	whole := pattern
	if !filepath.IsAbs(pattern) {
		whole = filepath.Join(filepath.Dir(f.file), pattern)
		if f.real == "" { // standard input
			whole = pattern
		}
	}
	list := []string{whole}
	if strings.ContainsAny(pattern, `*?[`) {
		var err error
		if list, err = filepath.Glob(whole); err != nil {
			return nil, fmt.Errorf("found %s, which is no pattern: %w", excerpt(pattern), err)
		}
		list = slices.DeleteFunc(list, func(path string) bool { return strings.HasPrefix(filepath.Base(path), ".") })
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no file matches %s", excerpt(pattern))
	}
	for _, path := range list {
		switch info, err := os.Stat(path); {
		case err != nil:
			if e, ok := errors.AsType[*os.PathError](err); ok {
				err = e.Err
			}
			return nil, fmt.Errorf("%s: %w", excerpt(path), err)
		case info.IsDir():
			return nil, fmt.Errorf("%s is a folder; for its files write %s", excerpt(path), excerpt(filepath.Join(pattern, "*.yaml")))
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s is no regular file", excerpt(path))
		}
	}
	return list, nil
}

// includeOne reads a file that another file includes, unless it was read before: a job cannot be defined twice.
func (r *reader) includeOne(f *file, path string, at *yaml.Node, field string) error {
	in := Input{Path: path}
	real := realPath(in)
	for way, by := path, f; by != nil; by = by.from {
		if way = by.file + " includes " + way; by.real == real {
			f.problem(at, field, "the files include each other in a circle: %s", way)
			return nil
		}
	}
	for _, other := range r.files {
		if other.real == real {
			f.problem(at, field, "%s is read already%s", excerpt(path), other.why())
			return nil
		}
	}
	if len(r.files) >= maxFiles {
		f.problem(at, field, "a manifest has at most %d files", maxFiles)
		return nil
	}
	err := r.load(in, f, at)
	if e, ok := errors.AsType[*os.PathError](err); ok {
		err = fmt.Errorf("%s: %w", excerpt(path), e.Err)
	}
	if err != nil {
		f.problem(at, field, "%v", err)
	}
	return nil
}

// why says which place made Read read a file.
func (f *file) why() string {
	if f.from == nil {
		return ": it was given by itself, or with its folder"
	}
	return fmt.Sprintf(", because of line %d of %s", f.at.Line, f.from.file)
}

// once reports whether a definition is the first one with its name. A second one is a problem that names both
// places.
func (f *file) once(key *yaml.Node, path string) bool {
	if f.defined == nil {
		return true
	}
	if first, there := f.defined[path]; there {
		f.problem(key, path, "is defined twice; the first is in line %d of %s", first.Line, first.File)
		return false
	}
	f.defined[path] = Problem{File: f.file, Line: key.Line, Column: key.Column}
	return true
}

// readName reads the name of the manifest. All files that give a name must give the same one.
func (f *file) readName(r *reader) reading {
	return func(d *decoder, n *yaml.Node, path string) {
		name, before := "", len(d.problems)
		if text(&name)(d, n, path); len(d.problems) > before {
			return
		}
		if r.named != nil && name != f.m.Name {
			d.problem(n, path, "found %s, and %s in line %d of %s; one manifest has one name", excerpt(name), excerpt(f.m.Name), r.named.Line, cmp.Or(r.named.File, "-"))
			return
		}
		if err := store.CheckManifest(name); err != nil {
			d.problem(n, path, "%v", err)
			return
		}
		at := d.place(followed(n), path)
		r.named, f.m.Name, f.m.Named = &at, name, name != ""
	}
}
