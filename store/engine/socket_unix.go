//go:build unix

package engine

import (
	"context"
	"crypto/tls"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// quiet reports whether nothing has come on a connection that is yet to be read, and that it is open.
func quiet(_ context.Context, pg *pgconn.PgConn) bool {
	conn := pg.Conn()
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return nothingToRead(conn)
}

func nothingToRead(conn net.Conn) bool {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	// Not raw.Read, which waits for other readers: the driver may have left one, after a write that took long.
	var peeked error
	err = raw.Control(func(fd uintptr) { _, _, peeked = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK) })
	return err == nil && (peeked == syscall.EAGAIN || peeked == syscall.EWOULDBLOCK)
}
