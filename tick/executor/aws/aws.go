// Package aws finds the credentials of the process on AWS: Source asks what the platform has for it. It
// signs requests to AWS with them, and makes the token with which a function or a task logs in to RDS;
// it also gets a secret from the extension that caches it beside a function.
//
// It does not use the SDK, whose packages for these would be a large part of what a cold start loads.
// The credentials are needed for each new connection, and cost a call on the loopback interface, or of
// the machine's network, or a few hashes.
package aws

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

func (env Lookup) value(name string) string {
	v, _ := env(name)
	return v
}
