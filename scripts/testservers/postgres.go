//go:build unix

package main

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

var postgres = &engine{
	parcel: parcel{
		name:  "postgres",
		title: "PostgreSQL",
		env:   "DBJOBS_TEST_POSTGRES",
		advice: "install the server (Debian, Ubuntu: apt-get install postgresql), or name one with an account that may create databases and roles:\n" +
			"    DBJOBS_TEST_POSTGRES=postgres://user:password@host:port/database",
		metapackage: "postgresql",
		packages:    regexp.MustCompile(`^(postgresql-\d+|lib.*)$`),
	},
	schemes:   []string{"postgres", "postgresql"},
	query:     "sslmode=disable",
	usualPort: "5432",
	minimum:   version{12, 0},
	find:      findPostgres,
	mark:      regexp.MustCompile(`^postgres \(PostgreSQL\)`),
	init:      initPostgres,
	args:      postgresArgs,
	ready:     postgresReady,
	forks:     true,
	stop:      syscall.SIGQUIT, // immediate shutdown, which still frees its shared memory
}

// findPostgres looks in the folders of Debian, Red Hat, Homebrew and of a build
// from source, newest version first, and beside what PATH calls initdb.
func findPostgres(root string) []installation {
	var dirs []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin", "/usr/local/pgsql/bin",
	} {
		found, _ := filepath.Glob(root + pattern) // the patterns are well-formed
		slices.SortFunc(found, func(a, b string) int { return folderVersion(b) - folderVersion(a) })
		dirs = append(dirs, found...)
	}
	if initdb := onPath("initdb"); root == "" && initdb != "" {
		dirs = append(dirs, filepath.Dir(initdb))
	}
	var found []installation
	for _, dir := range dirs {
		found = append(found, installation{
			server: filepath.Join(dir, "postgres"),
			init:   filepath.Join(dir, "initdb"),
			prefix: root + "/usr",
			libs:   libraryFolders(root),
		})
	}
	return found
}

var digits = regexp.MustCompile(`\d+`)

// folderVersion is the major version in a folder's name, 0 if there is none.
func folderVersion(dir string) int {
	n, _ := strconv.Atoi(digits.FindString(filepath.Base(filepath.Dir(dir))))
	return n
}

// initPostgres leaves the superuser without a password, which keeps it off the
// network: it gets in through the socket, in a folder that others cannot enter.
func initPostgres(ctx context.Context, s *server) error {
	err := s.run(ctx, "", s.inst.init, "-D", s.data(), "-U", "postgres",
		"--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return err
	}
	verifier, err := scramVerifier(s.password)
	if err != nil {
		return err
	}
	account := fmt.Sprintf("CREATE ROLE %s LOGIN CREATEDB CREATEROLE PASSWORD '%s'\nCREATE DATABASE %s OWNER %[1]s\n",
		account, verifier, database)
	return s.run(ctx, account, s.inst.server, "--single", "-D", s.data(), "-F", "-c", "exit_on_error=true", "postgres")
}

// scramVerifier is what the server keeps of a password. The tests log in many thousand times, so
// the key is derived in few steps, where the server itself would take 4096: the password is
// random, and nobody can guess it anyway. Logins that tests make have the server's own.
func scramVerifier(password string) (string, error) {
	const steps = 16
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, steps, sha256.Size)
	if err != nil {
		return "", err
	}
	key := func(name string) []byte {
		mac := hmac.New(sha256.New, salted)
		mac.Write([]byte(name))
		return mac.Sum(nil)
	}
	stored, text := sha256.Sum256(key("Client Key")), base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", steps, text(salt), text(stored[:]), text(key("Server Key"))), nil
}

func postgresArgs(s *server) []string {
	args := []string{"-D", s.data()}
	for _, setting := range []string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(s.port),
		"unix_socket_directories=" + s.dir,
		"max_connections=300",
		"ssl=on",
		"ssl_cert_file=" + filepath.Join(s.dir, certificateFile),
		"ssl_key_file=" + filepath.Join(s.dir, keyFile),
		"fsync=off",
		"synchronous_commit=off",
		"full_page_writes=off",
		"jit=off", // its library, the largest of all dependencies, is not fetched
	} {
		args = append(args, "-c", setting)
	}
	return args
}

// postgresReady reads the status that the server keeps in its pid file, as
// pg_ctl does.
func postgresReady(s *server) bool {
	const statusLine = 7
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	return len(lines) > statusLine && strings.TrimSpace(lines[statusLine]) == "ready"
}
