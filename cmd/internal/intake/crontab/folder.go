package crontab

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// File is one file of a folder such as /etc/cron.d.
type File struct{ Path, Text string }

// readByCron matches the names of the files that cron reads in /etc/cron.d.
var readByCron = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

// ignored returns why cron reads no file of that path, or "".
func ignored(path string) string {
	name := filepath.Base(path)
	switch system := filepath.Base(filepath.Dir(path)) == "cron.d"; {
	case system && !readByCron.MatchString(name):
		return "Cron of Debian leaves out files whose names have other characters than letters, digits, - and _. If another cron read it, import the file by itself."
	case strings.HasPrefix(name, "."):
		return "Cron leaves out files whose names begin with a dot. If another cron read it, import the file by itself."
	}
	return ""
}

// userOf returns the user whose crontab a file of a folder is, or "". A copy of a folder of users' crontabs may have any name, so a
// file is one there, too, unless its name has an extension. Files of cron.d belong to the system.
func userOf(path string) string {
	name := filepath.Base(path)
	if ofUser(path) || filepath.Ext(name) == "" && filepath.Base(filepath.Dir(path)) != "cron.d" {
		return name
	}
	return ""
}

// ReadFolder reads the files of a folder as one crontab. Each file has its own settings. The lines of a file belong to
// the user whose name it has, if it is the crontab of a user, unless they name users.
func ReadFolder(files []File, o Options) *intake.Result {
	all := newReader(o, map[string]string{})
	for _, f := range files {
		name := filepath.Base(f.Path)
		reason, mails := ignored(f.Path), all.mails
		if reason != "" {
			mails = map[string]string{} // its lines become no jobs
		}
		one := o
		one.Name = f.Path
		r := newReader(one, mails)
		r.owner = userOf(f.Path)
		r.read(f.Text)
		if reason != "" && len(r.result.Items)+r.settings > 0 {
			all.result.Items = append(all.result.Items, intake.Item{Place: name, Source: f.Path, Reason: reason})
			continue
		}
		for _, item := range r.result.Items {
			item.Place = fmt.Sprintf("%s, %s", name, item.Place)
			all.result.Items = append(all.result.Items, item)
		}
		all.result.Hooks = append(all.result.Hooks, r.result.Hooks...)
		all.settings, all.prose = all.settings+r.settings, all.prose+r.prose
		all.seen.add(r.seen)
	}
	all.close()
	return all.result
}
