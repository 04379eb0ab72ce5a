//go:build unix

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
)

// mysql is MySQL itself. Debian has it in no release but sid, which moves: the version is whatever is there, and nothing but
// make test-mysql asks for it.
var mysql = &engine{
	parcel: parcel{
		name:  "mysql",
		title: "MySQL",
		env:   "DBJOBS_TEST_MYSQL",
		advice: "install the server (Ubuntu: apt-get install mysql-server), or name one with an account that has all rights on `dbjobs\\_test%`.*, may grant them, and create users:\n" +
			"    DBJOBS_TEST_MYSQL=mysql://user:password@host:port/database",
		metapackage: "mysql-server-core",
		packages:    regexp.MustCompile(`^(mysql-server-core.*|lib.*|zlib1g)$`),
		release:     "sid",
	},
	schemes:   []string{"mysql"},
	usualPort: "3306",
	minimum:   version{8, 0},
	find:      findMySQL,
	mark:      regexp.MustCompile(`Ver [\d.]+(-\d\S*)? for `), // MariaDB's has its name behind the number
	init:      initMySQL,
	args:      mysqlArgs,
	ready:     greets,
	stop:      syscall.SIGKILL, // one process and nothing outside its folder
}

// findMySQL looks where packages put the server and at what PATH calls it. Packages of a release that is not this
// machine's bring a C library and a loader of their own.
func findMySQL(root string) []installation {
	var servers []string
	for _, dir := range []string{"/usr/sbin", "/usr/libexec", "/opt/homebrew/opt/mysql/bin", "/usr/local/opt/mysql/bin", "/usr/local/mysql/bin"} {
		servers = append(servers, filepath.Join(root+dir, "mysqld"))
	}
	if file := onPath("mysqld"); root == "" && file != "" {
		servers = append(servers, file)
	}
	var found []installation
	for _, file := range servers {
		found = append(found, installation{server: file, init: file, prefix: filepath.Dir(filepath.Dir(file)), libs: libraryFolders(root), loader: ownLoader(root)})
	}
	return found
}

// ownLoader is that of unpacked packages which have a C library of their own; else "".
func ownLoader(root string) string {
	loaders, _ := filepath.Glob(root + "/usr/lib/*-linux-gnu*/ld-linux-*.so.*") // the pattern is well-formed
	if root == "" || len(loaders) == 0 {
		return ""
	}
	return loaders[0]
}

// initMySQL makes the data folder, and the statements that the server runs as its administrator before it lets anyone in,
// each on a line. The administrator's account has no password, and is for the socket alone.
func initMySQL(ctx context.Context, s *server) error {
	if err := s.run(ctx, "", s.inst.argv(s.inst.init, slices.Concat(mysqlBase(s), []string{"--initialize-insecure", "--skip-log-bin"}, s.extra())...)...); err != nil {
		return err
	}
	return s.write(accountsFile, fmt.Sprintf("CREATE DATABASE %s;\n"+
		"CREATE USER '%s'@'%%' IDENTIFIED BY '%s';\n"+
		"GRANT ALL ON `dbjobs\\_test%%`.* TO '%[2]s'@'%%' WITH GRANT OPTION;\n"+
		"GRANT CREATE USER ON *.* TO '%[2]s'@'%%';\n", database, account, s.password))
}

// mysqlBase are the arguments for making the data folder and for the server. The first one must be the first.
func mysqlBase(s *server) []string {
	share := filepath.Join(s.inst.prefix, "share/mysql")
	return []string{
		"--no-defaults",
		"--basedir=" + s.inst.prefix,
		"--datadir=" + s.data(),
		"--tmpdir=" + s.dir,
		"--lc-messages-dir=" + share,
		"--character-sets-dir=" + filepath.Join(share, "charsets"),
		"--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--innodb-doublewrite=OFF",
	}
}

func mysqlArgs(s *server) []string {
	return append(mysqlBase(s),
		"--init-file="+filepath.Join(s.dir, accountsFile),
		"--bind-address=127.0.0.1",
		"--port="+strconv.Itoa(s.port),
		"--socket="+filepath.Join(s.dir, "s.sock"),
		"--pid-file="+filepath.Join(s.dir, "pid"),
		"--mysqlx=OFF",
		"--secure-file-priv=NULL",
		"--skip-name-resolve", // 127.0.0.1 is not localhost, where the administrator is
		"--max-connections=300",
		"--ssl-cert="+filepath.Join(s.dir, certificateFile),
		"--ssl-key="+filepath.Join(s.dir, keyFile),
		"--server-id=1",
		"--log-bin=binlog", // in ROW format, the default
		"--sync-binlog=0",
		"--character-set-server=latin1", // so that a table that forgets to name its own is found out
	)
}
