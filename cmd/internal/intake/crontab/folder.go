package crontab

import (
	"fmt"
	"path/filepath"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// File is one file of a folder such as /etc/cron.d.
type File struct{ Path, Text string }

// readByCron matches the names of the files that cron reads in such a folder.
var readByCron = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

// ReadFolder reads the files of a folder as one crontab. Each file has its own settings.
func ReadFolder(files []File, o Options) *intake.Result {
	all := newReader(o, map[string]string{})
	for _, f := range files {
		name := filepath.Base(f.Path)
		if !readByCron.MatchString(name) {
			all.result.Items = append(all.result.Items, intake.Item{Place: name, Source: f.Path,
				Reason: "Cron of Debian leaves out files whose names have other characters than letters, digits, - and _. If another cron read it, import the file by itself."})
			continue
		}
		one := o
		one.Name = f.Path
		r := newReader(one, all.mails)
		r.read(f.Text)
		for _, item := range r.result.Items {
			item.Place = fmt.Sprintf("%s, %s", name, item.Place)
			all.result.Items = append(all.result.Items, item)
		}
		all.result.Hooks = append(all.result.Hooks, r.result.Hooks...)
		all.settings, all.prose = all.settings+r.settings, all.prose+r.prose
		all.seen = traits{all.seen.program || r.seen.program, all.seen.reboot || r.seen.reboot, all.seen.user || r.seen.user}
	}
	all.close()
	return all.result
}
