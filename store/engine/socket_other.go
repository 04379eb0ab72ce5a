//go:build !unix

package engine

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"
)

// quiet reports whether a connection is open: by a trip, where nothing else tells.
func quiet(ctx context.Context, pg *pgconn.PgConn) bool { return pg.Ping(ctx) == nil }
