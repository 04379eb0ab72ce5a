// Release makes the files of a release of dbjobs:
//
//	go run -C scripts/release . -o DIR [-version v1.2.3] [-targets linux/amd64,darwin/arm64]
//
// Each target has an archive with the program, its licences and the shell completions. Each target of Linux also
// has the zip of the function and the Debian package. All targets of Linux share one image. There is an SBOM by
// CycloneDX, and SHA256SUMS of all files.
//
// The same commit, version and Go give the same bytes, in every folder and at every time. So the times in the
// files are the commit's, and the linker gets the version: the version that Go itself would write into the program
// depends on whether there is a repository, and on how the build is called.
package main
