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

// Endpoint returns the URL of the API of a service that the environment gives, and the variable that has it: the one of the
// service, such as AWS_ENDPOINT_URL_S3, or else the one of all. Both are empty if that is the usual API.
func (env Lookup) Endpoint(service string) (url, variable string) {
	for _, name := range []string{"AWS_ENDPOINT_URL_" + service, "AWS_ENDPOINT_URL"} {
		if v := env.value(name); v != "" {
			return v, name
		}
	}
	return "", ""
}
