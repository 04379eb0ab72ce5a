//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

var mariadb = &engine{
	parcel: parcel{
		name:  "mariadb",
		title: "MariaDB",
		env:   "DBJOBS_TEST_MARIADB",
		advice: "install the server (Debian, Ubuntu: apt-get install mariadb-server), or name one with an account that has all rights on `dbjobs\\_test%`.*, may grant them, and create users:\n" +
			"    DBJOBS_TEST_MARIADB=mysql://user:password@host:port/database",
		metapackage: "mariadb-server",
		packages:    regexp.MustCompile(`^(mariadb-(server|client)-core.*|lib.*)$`),
	},
	schemes:   []string{"mysql", "mariadb"},
	usualPort: "3306",
	minimum:   version{10, 6},
	find:      findMariaDB,
	mark:      regexp.MustCompile("MariaDB"), // mysqld may be another product
	init:      initMariaDB,
	args:      mariadbArgs,
	ready:     greets,
	stop:      syscall.SIGKILL, // one process and nothing outside its folder
}

// findMariaDB looks where packages put the server and at what PATH calls it.
func findMariaDB(root string) []installation {
	var servers []string
	for _, name := range []string{"mariadbd", "mysqld"} {
		for _, dir := range []string{"/usr/sbin", "/usr/libexec", "/opt/homebrew/opt/mariadb/bin", "/usr/local/opt/mariadb/bin", "/usr/local/mysql/bin"} {
			servers = append(servers, filepath.Join(root+dir, name))
		}
		if file := onPath(name); root == "" && file != "" {
			servers = append(servers, file)
		}
	}
	var found []installation
	for _, file := range servers {
		prefix := filepath.Dir(filepath.Dir(file))
		for _, init := range []string{"bin/mariadb-install-db", "bin/mysql_install_db", "scripts/mariadb-install-db"} {
			found = append(found, installation{
				server: file,
				init:   filepath.Join(prefix, init),
				prefix: prefix,
				libs:   libraryFolders(root),
				loader: ownLoader(root),
			})
		}
	}
	return found
}

// initMariaDB makes the data folder, and the statements that the server runs as
// its administrator before it lets anyone in: no client is needed.
func initMariaDB(ctx context.Context, s *server) error {
	install := s.installMariaDB
	if s.inst.loader != "" {
		install = s.bootstrapMariaDB
	}
	if err := install(ctx); err != nil {
		return err
	}
	statements := fmt.Sprintf("CREATE DATABASE %s;\n"+
		"CREATE USER '%s'@'%%' IDENTIFIED BY '%s';\n"+
		"GRANT ALL ON `dbjobs\\_test%%`.* TO '%[2]s'@'%%' WITH GRANT OPTION;\n"+
		"GRANT CREATE USER ON *.* TO '%[2]s'@'%%';\n"+
		"DELETE FROM mysql.global_priv WHERE User = '' OR User = 'root' AND Host <> 'localhost';\n"+
		"FLUSH PRIVILEGES;\n", database, account, s.password)
	return s.write(accountsFile, statements)
}

func (s *server) installMariaDB(ctx context.Context) error {
	return s.run(ctx, "", s.inst.init, "--no-defaults", "--basedir="+s.inst.prefix, "--datadir="+s.data(),
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
}

// bootstrapMariaDB does what the script for installing does, which would start the server without its own loader.
func (s *server) bootstrapMariaDB(ctx context.Context) error {
	share := filepath.Join(s.inst.prefix, "share/mariadb")
	sql := "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"
	for _, file := range []string{"mariadb_system_tables", "mariadb_performance_tables", "mariadb_system_tables_data", "fill_help_tables",
		"maria_add_gis_sp_bootstrap", "mariadb_sys_schema"} {
		text, err := os.ReadFile(filepath.Join(share, file+".sql"))
		if err != nil {
			return err
		}
		sql += string(text) + "\n"
	}
	if err := s.owner.mkdir(s.data()); err != nil {
		return err
	}
	return s.run(ctx, sql, s.inst.argv(s.inst.server, "--no-defaults", "--bootstrap", "--basedir="+s.inst.prefix, "--datadir="+s.data(),
		"--lc-messages-dir="+share, "--tmpdir="+s.dir, "--skip-name-resolve", "--enforce-storage-engine=", "--loose-skip-innodb-doublewrite")...)
}

const accountsFile = "accounts.sql"

func mariadbArgs(s *server) []string {
	args := []string{
		"--no-defaults",
		"--basedir=" + s.inst.prefix,
		"--datadir=" + s.data(),
		"--tmpdir=" + s.dir,
		"--init-file=" + filepath.Join(s.dir, accountsFile),
		"--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(s.port),
		"--socket=" + filepath.Join(s.dir, "s.sock"),
		"--pid-file=" + filepath.Join(s.dir, "pid"),
		"--skip-name-resolve", // 127.0.0.1 is not localhost, where the administrator is
		"--max-connections=300",
		"--event-scheduler=ON", // make bench measures it
		"--ssl-cert=" + filepath.Join(s.dir, certificateFile),
		"--ssl-key=" + filepath.Join(s.dir, keyFile),
		"--server-id=1",
		"--log-bin=binlog",
		"--binlog-format=ROW",
		"--sync-binlog=0",
		"--innodb-flush-log-at-trx-commit=0", "--loose-innodb-flush-method=nosync", "--loose-sync-frm=0", "--loose-debug-no-sync=1",
		"--loose-skip-innodb-doublewrite",
	}
	for _, share := range []string{"mysql", "mariadb"} {
		dir := filepath.Join(s.inst.prefix, "share", share)
		if _, err := os.Stat(filepath.Join(dir, "english")); err == nil {
			args = append(args, "--lc-messages-dir="+dir)
		}
	}
	return args
}

// greets reports whether a server of MySQL's protocol greets: MariaDB listens earlier, while it
// still makes the accounts.
func greets(s *server) bool {
	conn, err := net.DialTimeout("tcp", s.address(), time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // without one the read below still ends, with the server
	var packet [5]byte                                // length, number, protocol version
	_, err = io.ReadFull(conn, packet[:])
	return err == nil && packet[4] == 10
}
