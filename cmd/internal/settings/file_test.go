package settings

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// The URL of the database may be in a file on a file server that is away. Nothing ends the read of it, but the command does not wait
// for good.
func TestURLFileThatIsAway(t *testing.T) {
	url, _ := storetest.Away(t, "postgres://ann:geheim@h/d")
	direct, _ := storetest.Away(t, "postgres://ann:geheim@i/d")
	for _, env := range []map[string]string{
		{FileVariable: url},
		{URLVariable: "postgres://ann:geheim@h/d", DirectVariable + "_FILE": direct},
	} {
		ends := errors.New("the end of the budget")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(ends)
		_, err := Find(ctx, "", false, lookup(env), nil)
		if _, unread := errors.AsType[*UnreadError](err); !unread || !errors.Is(err, ends) {
			t.Errorf("%v: %v, want that the file was not read in time", env, err)
		}
		old := patience // where there is no budget
		patience = time.Millisecond
		_, err = Find(t.Context(), "", false, lookup(env), nil)
		patience = old
		if _, unread := errors.AsType[*UnreadError](err); !unread {
			t.Errorf("%v: without a budget: %v, want that the file was not read in time", env, err)
		}
	}
}

// The password of a process that lives on stays as it is while the file server is away.
func TestPasswordWhoseFileIsAway(t *testing.T) {
	fresh, soon := secretFresh, followPatience
	secretFresh, followPatience = 0, time.Millisecond
	defer func() { secretFresh, followPatience = fresh, soon }()
	path, back := storetest.Away(t, "postgres://ann:neu@h/d")
	d := Database{URL: "postgres://ann:geheim@h/d"}
	d.Follow(func(ctx context.Context) (string, error) {
		data, err := File(ctx, path, fileMost)
		return string(data), err
	})
	if user, password, err := d.Login(t.Context()); user != "ann" || password != "geheim" || err != nil {
		t.Errorf("away: %s, %s, %v", user, password, err)
	}
	back()
	followPatience = time.Hour
	if user, password, err := d.Login(t.Context()); user != "ann" || password != "neu" || err != nil {
		t.Errorf("back: %s, %s, %v", user, password, err)
	}
}

// A process that lives on may need a file often while its file server is away. One read of it hangs, and not one for each need, as
// each keeps a thread of the system. A caller that still has time when the server is back reads the file as it is then.
func TestFileThatIsAwayHasOneRead(t *testing.T) {
	reads := func() int {
		stacks := make([]byte, 1<<20)
		return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("settings.readFile("))
	}
	for reads() > 0 { // those of other tests end when their files are back
		time.Sleep(time.Millisecond)
	}
	path, back := storetest.Away(t, "geheim")
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if data, err := File(ctx, path, fileMost); err == nil {
			t.Fatalf("read %q, want nothing", data)
		}
	}
	if n := reads(); n != 1 {
		t.Errorf("%d reads are under way, want 1", n)
	}
	type answer struct {
		data []byte
		err  error
	}
	answers := make(chan answer)
	for range 10 {
		go func() {
			data, err := File(t.Context(), path, fileMost)
			answers <- answer{data, err}
		}()
	}
	back()
	for range 10 {
		if a := <-answers; string(a.data) != "geheim" || a.err != nil {
			t.Errorf("%q, %v", a.data, a.err)
		}
	}
}
