package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/gate"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/store"
)

// The variables with secrets of callers. They are not flags, because a command line is not secret.
const (
	tokenVariable   = "DBJOBS_SERVE_TOKEN"
	webhookVariable = "DBJOBS_SERVE_WEBHOOK_SECRET"
)

// portVariable is the variable by which platforms give a container the port on which they call it.
const portVariable = "PORT"

type serveFlags struct {
	listen  string
	timeout store.Duration
	oidc    gate.OIDC
	anyone  bool
}

func (c *cli) serve() *cobra.Command {
	f := serveFlags{timeout: store.Duration(time.Minute)}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer HTTP requests, one pass for each: for platforms that call a URL",
		Long: `Answers HTTP requests, for platforms that call a URL and let the process sleep in between, such as Cloud Run services:

  POST /tick     one pass, as dbjobs tick makes it; ?limit=N starts at most N runs
  POST /work     one worker's pass; ?queue=NAME takes runs from this queue, ?limit=N at most N
  GET  /healthz  200 while the process takes requests; it needs no token, and does not ask the database

The answer to a pass is its report, as --json prints it. One tick and one worker's pass run at a time. Requests that
come meanwhile wait for one more pass, which begins when that one has ended, and all get its answer. Settings of the
pass come from the variables of tick and work, such as DBJOBS_CONCURRENCY. A pass goes on when its caller has gone.
Between requests there is no connection to the database, so the database may sleep.

A caller needs one of these; what is not set is not accepted:
  a token            Authorization: Bearer TOKEN; set DBJOBS_SERVE_TOKEN or, with the name of a file, DBJOBS_SERVE_TOKEN_FILE
  a signature        Standard Webhooks; set DBJOBS_SERVE_WEBHOOK_SECRET or DBJOBS_SERVE_WEBHOOK_SECRET_FILE
  an identity token  OpenID Connect, as Cloud Scheduler sends it; set --oidc-audience and --oidc-caller
Several tokens or secrets are separated by blanks, so that one can be replaced while both are in use.

The status tells the platform whether to try again: 200 the pass is done (a job that failed is only recorded), 400 a
parameter is wrong, 401 and 403 the caller is not allowed, 429 and 503 try again later, 500 the pass failed. The process
speaks plain HTTP: let the platform, or a proxy, do TLS. SIGTERM ends it: runs get the time of DBJOBS_GRACE to end.`,
		Example: `  DBJOBS_SERVE_TOKEN_FILE=token dbjobs serve
  dbjobs serve --oidc-audience https://dbjobs-x7k.a.run.app --oidc-caller ticker@example.iam.gserviceaccount.com`,
		Args: positional(),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "", "`address` to listen on, such as 127.0.0.1:8080 (the default) or :8080; where the variable PORT is set, the default is that port on all addresses")
	flags.Var(durationFlag{&f.timeout}, "timeout", "time from a request to its answer, such as 55s; the pass gets what DBJOBS_MARGIN (3s) leaves")
	flags.StringVar(&f.oidc.Audience, "oidc-audience", "", "audience that identity tokens must have: the URL of this service")
	flags.StringSliceVar(&f.oidc.Callers, "oidc-caller", nil, "email address or subject that identity tokens must have; may be given several times")
	flags.StringVar(&f.oidc.Issuer, "oidc-issuer", "", "`URL` of the issuer of identity tokens (default "+gate.Google+")")
	flags.BoolVar(&f.anyone, "allow-unauthenticated", false, "serve everybody who reaches the address: only where the platform itself checks callers")
	fromVariables(cmd, "listen", "timeout", "oidc-audience", "oidc-caller", "oidc-issuer")
	cmd.RunE = c.do(func(cmd *cobra.Command, _ []string) error { return c.serveHTTP(cmd, &f) })
	return cmd
}

// serveHTTP serves requests until ctx ends, and then until the passes that still run have ended. It opens no
// connection to the database at its start: a wrong setting is found at once, and a sleeping database goes on
// sleeping.
func (c *cli) serveHTTP(cmd *cobra.Command, f *serveFlags) error {
	callers, err := c.callers(cmd.Context(), f)
	if err != nil {
		return err
	}
	if err := c.findEach(cmd); err != nil {
		return err
	}
	if _, err := c.host(); err != nil {
		return err
	}
	if err := c.checkMetricsOfServe(); err != nil {
		return err
	}
	h := &handler{
		service: service{stderr: c.stderr, env: f.lookup(c.env), environ: c.environ, examined: true},
		callers: callers, timeout: time.Duration(f.timeout), refusals: c, ending: cmd.Context(),
		args: []string{"--log-format", c.logFormat},
	}
	for _, database := range c.databases {
		h.args = append(h.args, "--database", database)
	}
	budget, margin, err := h.budget(h.timeout)
	if err != nil {
		return err
	}
	if budget < leastBudget {
		return badInput("--timeout: %s minus DBJOBS_MARGIN (%s) leaves less than the %s that a pass needs", f.timeout, margin, leastBudget)
	}
	if err := c.checkAlarmOfServe(budget); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", f.address(c.env))
	if err != nil {
		return badInput("--listen: %v", err)
	}
	c.say("listening on http://%s", listener.Addr())
	return h.serve(listener)
}

// address returns the address to listen on. Without a PORT, only this host can call, unless the flag asks for
// more.
func (f *serveFlags) address(env settings.Lookup) string {
	if port, _ := env(portVariable); f.listen == "" && port != "" {
		return ":" + port
	}
	return cmp.Or(f.listen, "127.0.0.1:8080")
}

// lookup returns the variables of passes. A task of Cloud Tasks that a pass sets calls this service, which takes only tokens with its
// own audience. So the pass has to know that audience also where a flag has given it.
func (f *serveFlags) lookup(env settings.Lookup) settings.Lookup {
	return func(name string) (string, bool) {
		if name == flagVariables["oidc-audience"] && f.oidc.Audience != "" {
			return f.oidc.Audience, true
		}
		return env(name)
	}
}

// callers reads the credentials that callers may have. A nil gate means that anybody may call.
func (c *cli) callers(ctx context.Context, f *serveFlags) (*gate.Gate, error) {
	s := gate.Settings{OIDC: f.oidc}
	var err error
	if s.Tokens, err = c.credentials(ctx, tokenVariable); err != nil {
		return nil, err
	}
	if s.Secrets, err = c.credentials(ctx, webhookVariable); err != nil {
		return nil, err
	}
	callers, err := gate.New(s, time.Now)
	switch {
	case err != nil:
		return nil, &usageError{problem: err.Error()}
	case callers.Any() && f.anyone:
		return nil, badInput("--allow-unauthenticated is given, and a credential of callers is set too; leave one out")
	case f.anyone:
		return nil, nil
	case !callers.Any():
		return nil, &usageError{
			problem: "no caller could be accepted: no credential for callers is set",
			hint:    "set " + tokenVariable + ", " + webhookVariable + " or --oidc-audience; or, where the platform itself checks callers, --allow-unauthenticated",
		}
	}
	return callers, nil
}

// credentials returns the secrets in a variable, or in the file that the variable with _FILE names.
func (c *cli) credentials(ctx context.Context, variable string) ([]string, error) {
	text, _, err := settings.Secret(ctx, variable, c.env)
	if err != nil {
		return nil, &usageError{problem: err.Error()}
	}
	list := strings.Fields(text)
	for _, secret := range list {
		c.secrets.Add(secret)
	}
	return list, nil
}

// complaints passes on what the server says about connections, such as that the process has too many open files.
type complaints struct{ c *cli }

func (l complaints) Write(text []byte) (int, error) {
	l.c.tell(slog.LevelWarn, "%s", bytes.TrimSpace(text))
	return len(text), nil
}

// idleCaller is how long a connection is kept for the caller's next request. The caller has to close it first: a balancer that sends
// a request on a connection that is just being closed answers 502, and the pass is missing. Google's balancers keep one for 10
// minutes, Envoy for an hour, and those of AWS for at most 4,000 s. A connection without a request costs little, and one whose
// caller is gone does not stay: the kernel probes it.
const idleCaller = 75 * time.Minute

// serve answers requests on a listener until h.ending ends, or until no connection can be accepted any more. Then the passes are asked
// to end, and it returns when the last one has ended.
func (h *handler) serve(listener net.Listener) error {
	ending, end := context.WithCancel(h.ending)
	defer end()
	h.ending = ending
	s := &http.Server{
		Handler:           h.routes(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       20 * time.Second,
		IdleTimeout:       idleCaller,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(complaints{h.refusals}, "", 0),
	}
	closed := make(chan struct{})
	context.AfterFunc(h.ending, func() {
		defer close(closed)
		// The passes that run end on their own, because they watch h.ending.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ending), h.timeout)
		defer cancel()
		if s.Shutdown(ctx) != nil {
			_ = s.Close() // a caller does not read its answer
		}
	})
	err := s.Serve(listener)
	end() // the server may have ended on its own
	<-closed
	h.passes.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
