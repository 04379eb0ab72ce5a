package main

import (
	"context"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
	"github.com/google/uuid"
	"github.com/package-url/packageurl-go"
)

// bill writes the software bill of materials. It has each module that is linked into one of the programs, read
// from the programs themselves. Each module has its licences, and the name under which vulnerabilities are
// published.
func (r *release) bill(context.Context) error {
	modules, goVersion := map[string]*debug.Module{}, ""
	licences := map[string][]string{}
	for _, t := range r.targets {
		info, err := buildinfo.ReadFile(filepath.Join(r.dir(t), t.program()))
		if err != nil {
			return err
		}
		goVersion = info.GoVersion
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			modules[m.Path+"@"+m.Version] = m
		}
		text, err := os.ReadFile(filepath.Join(r.dir(t), "LICENSES"))
		if err != nil {
			return err
		}
		if err := readLicences(string(text), licences); err != nil {
			return err
		}
	}
	version := strings.TrimPrefix(goVersion, "go")
	standard := "pkg:golang/std@" + version
	components := []cyclonedx.Component{{
		BOMRef: standard, Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: version, PackageURL: standard,
		Description: "the Go standard library", Licenses: licencesOf(licences["the Go standard library"]),
	}}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		c, err := component(modules[name], licences[name])
		if err != nil {
			return err
		}
		components = append(components, c)
	}
	b := r.describe(components)
	return write(r.name("dbjobs", ".cdx.json"), func(w io.Writer) error {
		return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(b, cyclonedx.SpecVersion1_6)
	})
}

// describe returns the bill of the program with these components. Its serial number is made from the version.
func (r *release) describe(components []cyclonedx.Component) *cyclonedx.BOM {
	ref := packageurl.NewPackageURL(packageurl.TypeGolang, "github.com/dbjobs", "dbjobs", r.source.version, nil, "").ToString()
	needs := make([]string, len(components))
	for i, c := range components {
		needs[i] = c.BOMRef
	}
	b := cyclonedx.NewBOM()
	b.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(ref)).URN()
	b.Metadata = &cyclonedx.Metadata{
		Timestamp: r.source.time.Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: ref, Type: cyclonedx.ComponentTypeApplication, Name: "dbjobs", Version: r.source.version, PackageURL: ref,
			Licenses: licencesOf([]string{"Apache-2.0"}),
		},
	}
	b.Components = &components
	b.Dependencies = &[]cyclonedx.Dependency{{Ref: ref, Dependencies: &needs}}
	return b
}

// component describes a module. Its hash is that of go.sum, which is one hash over all files of the module.
func component(m *debug.Module, licences []string) (cyclonedx.Component, error) {
	namespace, name := "", m.Path
	if i := strings.LastIndexByte(m.Path, '/'); i >= 0 {
		namespace, name = m.Path[:i], m.Path[i+1:]
	}
	purl := packageurl.NewPackageURL(packageurl.TypeGolang, namespace, name, m.Version, nil, "").ToString()
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil || len(sum) == 0 {
		return cyclonedx.Component{}, fmt.Errorf("%s: go.sum has no sum of it", m.Path)
	}
	if len(licences) == 0 {
		return cyclonedx.Component{}, fmt.Errorf("%s: nobody knows the text of its licence", m.Path)
	}
	return cyclonedx.Component{
		BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl,
		Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}, Licenses: licencesOf(licences),
	}, nil
}

func licencesOf(ids []string) *cyclonedx.Licenses {
	var l cyclonedx.Licenses
	for _, id := range ids {
		l = append(l, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
	}
	return &l
}

// heading matches the line above each text that scripts/notices writes: the module that owns the text, and the
// file that contains it.
var heading = regexp.MustCompile(`(?m)^={80}\n(.+): (.+)\n={80}\n`)

// readLicences adds the SPDX identifiers of the texts to the modules that own them.
func readLicences(text string, into map[string][]string) error {
	known, err := assets.DefaultClassifier()
	if err != nil {
		return err
	}
	at := heading.FindAllStringSubmatchIndex(text, -1)
	for i, h := range at {
		whose, end := text[h[2]:h[3]], len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		for _, m := range known.Match([]byte(text[h[1]:end])).Matches {
			if id := spdx(m); id != "" && !slices.Contains(into[whose], id) {
				into[whose] = append(into[whose], id)
				slices.Sort(into[whose])
			}
		}
	}
	return nil
}

// spdx returns the identifier if a match covers a whole licence text, because the classifier also finds mentions
// of a licence.
func spdx(m *classifier.Match) string {
	if m.MatchType != "License" {
		return ""
	}
	return m.Name
}
