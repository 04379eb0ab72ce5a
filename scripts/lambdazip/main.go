// Lambdazip packs a Lambda function. The same files give the same bytes, at whichever time and place they are
// packed, so that Terraform and people can tell whether anything has changed.
//
//	go run ./scripts/lambdazip -o lambda.zip bootstrap [FILE...]
//
// Files are packed under the last part of their path. The file bootstrap, which Lambda starts, is executable.
package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

func main() {
	out := flag.String("o", "lambda.zip", "the file to write")
	flag.Parse()
	if err := pack(*out, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lambdazip:", err)
		os.Exit(1)
	}
}

// epoch is the first instant that a zip file can hold.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// pack writes the files into out, in the order of their names. It reports the sizes, and the hash by which Lambda
// knows the zip.
func pack(out string, files []string, report io.Writer) (err error) {
	byName := map[string]string{}
	for _, f := range files {
		byName[filepath.Base(f)] = f
	}
	if len(byName) < len(files) || byName["bootstrap"] == "" {
		return errors.New("wants files of different names, one of them bootstrap")
	}
	w, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	hash := sha256.New()
	z, unpacked := zip.NewWriter(io.MultiWriter(w, hash)), int64(0)
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		n, err := add(z, name, byName[name])
		if err != nil {
			return err
		}
		unpacked += n
	}
	if err := z.Close(); err != nil {
		return err
	}
	info, err := w.Stat()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(report, "%s: %d bytes, unpacked %d, sha256 %s\n", out, info.Size(), unpacked, base64.StdEncoding.EncodeToString(hash.Sum(nil)))
	return err
}

func add(z *zip.Writer, name, file string) (int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: epoch}
	h.SetMode(0o644)
	if name == "bootstrap" {
		h.SetMode(0o755)
	}
	w, err := z.CreateHeader(h)
	if err != nil {
		return 0, err
	}
	return io.Copy(w, f)
}
