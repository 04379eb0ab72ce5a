package engine

import (
	"bytes"
	"context"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// The sentinels of this package. An error that a caller may want to distinguish wraps one of them.
var (
	ErrNotFound    = errors.New("not found")
	ErrExists      = errors.New("already there")
	ErrSchema      = errors.New("the schema does not fit this program")
	ErrUnreachable = errors.New("database out of reach")
	ErrReadOnly    = errors.New("database not writable")
	ErrDenied      = errors.New("not allowed")                 // the login lacks a right
	ErrOutdated    = errors.New("the run was delivered again") // a write with an old fence
)

// Wrap translates an error of the engine. All errors of drivers leave the package through it.
func (db *DB) Wrap(doing string, err error) error { return db.wrap(doing, err, db.e.advise) }

// WrapForeign is Wrap for what does not belong to dbjobs, such as the jobs of another scheduler.
func (db *DB) WrapForeign(doing string, err error) error {
	return db.wrap(doing, err, db.e.adviseForeign)
}

// adviseForeign is the advice for what does not belong to dbjobs. The rights that dbjobs needs in its own tables do not help
// there, and neither where the server lets the login not even connect.
func (e *Engine) adviseForeign(err error) string { return strings.TrimSuffix(e.advise(err), rights) }

// wrap is Wrap with an advice for some errors, or none.
func (db *DB) wrap(doing string, err error, advise func(error) string) error {
	if err == nil {
		return nil
	}
	err = db.hide(err)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	switch db.class(err) {
	case noTable:
		return fmt.Errorf("%s: %w: the tables of dbjobs are not there; run `dbjobs migrate`", doing, ErrSchema)
	case readOnly:
		return fmt.Errorf("%s: %w: %w%s", doing, ErrReadOnly, err, advise(err))
	case diskFull:
		return fmt.Errorf("%s: %w: the disk is full: %w", doing, ErrReadOnly, err)
	case lockTimeout:
		return fmt.Errorf("%s: %w: %w", doing, ErrLocked, err)
	case unreachable, refused, crowded, gone:
		return fmt.Errorf("%s: %w: %w%s", doing, ErrUnreachable, err, advise(err))
	case forbidden:
		return fmt.Errorf("%s: %w: %w%s", doing, ErrDenied, err, advise(err))
	case duplicate:
		return fmt.Errorf("%s: %w: %w", doing, ErrExists, err)
	case outdated:
		return fmt.Errorf("%s: %w", doing, ErrOutdated)
	}
	return fmt.Errorf("%s: %w%s", doing, err, advise(err))
}

// class returns the kind of an error, by what the caller has to do about it.
func (db *DB) class(err error) class {
	c := db.e.classify(err)
	var never connectError
	if (c == other || c == forbidden) && errors.As(err, &never) {
		return refused
	}
	return c
}

// Transient reports whether the transaction lost against another one and can be tried again.
func (e *Engine) Transient(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, errInterrupted) || errors.Is(err, errSpared) || e.classify(err) == transient || e.Locked(err)
}

// Locked reports whether a statement waited too long for rows that another session has locked.
func (e *Engine) Locked(err error) bool {
	return errors.Is(err, ErrLocked) || e.classify(err) == lockTimeout
}

// raised is the severity of an error after which the session goes on. So a code of a lost connection is not about this
// session: a function has raised it, or it is about a server behind this one, as those of dblink are.
const raised = "ERROR"

// Broken reports whether the connection was lost, or was never made. A file has none that could be lost.
func (e *Engine) Broken(err error) bool {
	if f, told := e.Describe(err, ""); e.OneWriter || told && f.Severity == raised {
		return false
	}
	var never connectError
	c := e.classify(err)
	return errors.As(err, &never) || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && (c == unreachable || c == gone)
}

// TakesNoWrites reports whether the database refused a statement because it takes no writes for now. An error that a routine
// has raised, or that tells what another server has said, is none of that, as far as the engine tells it.
func (e *Engine) TakesNoWrites(err error) bool {
	return e.classify(err) == readOnly && !(e.passedOn != nil && e.passedOn(err))
}

// handsOver reports whether another server may do what this one has refused: it answers that it takes no writes, or no
// statements, for now.
func (e *Engine) handsOver(err error) bool {
	_, answered := e.Describe(err, "")
	return !e.OneWriter && (e.TakesNoWrites(err) || answered && e.classify(err) == unreachable)
}

// Refused reports whether a single row may be at fault, because the engine refused values that were written or read.
// Errors about connections, locks, rights, disk space and time do not count: they concern all rows, or their outcome
// is unknown. A conflict that came at each try counts.
func (e *Engine) Refused(err error) bool {
	return errors.Is(err, ErrConflict) || e.atFault(err)
}

type hidden struct {
	error
	text string
}

func (h hidden) Error() string { return h.text }
func (h hidden) Unwrap() error { return h.error }

// hide removes credentials from an error's text: a driver or a server may quote them.
func (db *DB) hide(err error) error {
	if err == nil {
		return nil
	}
	if text := db.secrets.Hide(err.Error()); text != err.Error() {
		return hidden{err, text}
	}
	return err
}

// Hide removes credentials from a text of an owner's job; without an owner, from any text.
func (db *DB) Hide(owner, text string) string { return db.secrets.For(owner).Hide(text) }

// Separate says whether owners must not learn the secrets of others than login: see secret.Known.
func (db *DB) Separate(on bool, login string) { db.secrets.Separate(on, login) }

// isBroken reports whether the connection broke during a statement.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, sql.ErrConnDone)
}

// ofCertificate is the advice about a certificate of a server. option is that of the URL which names the file of an authority.
func ofCertificate(err error, option string) string {
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return "; give the file with the certificate of that authority as " + option + "=FILE in the URL"
	}
	if _, other := errors.AsType[x509.HostnameError](err); other {
		return "; the URL has to name the host as the server's certificate does"
	}
	if invalid, found := errors.AsType[x509.CertificateInvalidError](err); found && invalid.Reason == x509.Expired {
		return "; the server needs a new certificate, unless the clock of this machine is wrong"
	}
	return ""
}

// ofEncryptedKey is the advice about an error that comes from the file of a private key, if the key is encrypted.
func ofEncryptedKey(file, sign string) string {
	if key, err := os.ReadFile(file); err != nil || !bytes.Contains(key, []byte(sign)) {
		return ""
	}
	return "; the key is encrypted, and dbjobs cannot decrypt it: `openssl pkey -in KEY -out FILE` writes it without a password; let only the user of dbjobs read that file"
}

// rights is the advice about a missing right.
const rights = "; this login lacks a right that dbjobs needs: `dbjobs migrate --print-grants KIND --login NAME` prints the rights of a ticker, or of an admin, who migrates and uninstalls"
