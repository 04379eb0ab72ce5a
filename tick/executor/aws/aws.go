// Package aws gets the credentials with which a function or a task on AWS logs in to its database: a
// secret, from the extension that caches it beside the function, and a token for RDS, signed with the
// function's own credentials. It signs requests to AWS with them, too.
//
// It does not use the SDK, whose packages for these would be a large part of what a cold start loads.
// The credentials are needed for each new connection, and cost a call on the loopback interface or a
// few hashes.
package aws

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

func (env Lookup) value(name string) string {
	v, _ := env(name)
	return v
}
