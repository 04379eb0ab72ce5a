package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name   string // below the archive's one folder
	source string
	mode   fs.FileMode
}

// contents returns the files that a user finds in an archive. Archives for Linux also have the units of systemd.
func (r *release) contents(t target) []entry {
	entries := []entry{
		{"LICENSES", filepath.Join(r.dir(t), "LICENSES"), 0o644},
		{t.program(), filepath.Join(r.dir(t), t.program()), 0o755},
	}
	for _, shell := range shells {
		entries = append(entries, entry{"completions/" + shell.file, filepath.Join(r.work, "completions", shell.file), 0o644})
	}
	if t.os == "linux" {
		for _, unit := range units {
			entries = append(entries, entry{"systemd/" + unit, filepath.Join(r.root, "scripts/triggers", unit), 0o644})
		}
	}
	return entries
}

// archives packs each target in the form that people expect on its system.
func (r *release) archives(context.Context) error {
	for _, t := range r.targets {
		pack, suffix := tarball, ".tar.gz"
		if t.os == "windows" {
			pack, suffix = zipped, ".zip"
		}
		suffix = "_" + t.os + "_" + t.arch + suffix
		folder := filepath.Base(r.name("dbjobs", "_"+t.os+"_"+t.arch))
		if err := write(r.name("dbjobs", suffix), func(w io.Writer) error { return pack(w, folder, r.contents(t), r.source.time) }); err != nil {
			return err
		}
	}
	return nil
}

func write(name string, fill func(io.Writer) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return fill(f)
}

func tarball(w io.Writer, folder string, entries []entry, at time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	out := tar.NewWriter(z)
	for _, e := range entries {
		text, err := os.ReadFile(e.source)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: path.Join(folder, e.name), Mode: int64(e.mode), Size: int64(len(text)), Typeflag: tar.TypeReg, ModTime: at}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), z.Close())
}

func zipped(w io.Writer, folder string, entries []entry, at time.Time) error {
	out := zip.NewWriter(w)
	for _, e := range entries {
		text, err := os.ReadFile(e.source)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: path.Join(folder, e.name), Method: zip.Deflate, Modified: at}
		h.SetMode(e.mode)
		f, err := out.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(text); err != nil {
			return err
		}
	}
	return out.Close()
}
