// Release makes what a release of dbjobs consists of:
//
//	go run -C scripts/release . -o DIR [-version v1.2.3] [-targets linux/amd64,darwin/arm64]
//
// For each target an archive with the program, its licences and the shell completions; for each target of Linux the
// function's zip and the Debian package, and one image for all of them; an SBOM by CycloneDX; and SHA256SUMS, of all.
//
// The same commit, version and Go give the same bytes, in whatever folder and at whatever time. So the times in the files
// are the commit's, and the linker gets the version: what Go itself would write into the program depends on whether
// there is a repository, and on how the build is called.
package main
