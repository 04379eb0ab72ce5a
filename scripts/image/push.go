package main

import (
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/google"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push sends the layout that lay has written to a registry, under a tag.
func push(dir, to string) error {
	tag, err := name.NewTag(to, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("push: want HOST/PATH:TAG: %w", err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return err
	}
	login := remote.WithAuthFromKeychain(authn.NewMultiKeychain(authn.DefaultKeychain, google.Keychain))
	entry := list.Manifests[0] // lay writes exactly one
	if entry.MediaType.IsIndex() {
		all, err := index.ImageIndex(entry.Digest)
		if err != nil {
			return err
		}
		err = remote.WriteIndex(tag, all, login)
		return pushed(tag, entry.Digest.String(), err)
	}
	one, err := index.Image(entry.Digest)
	if err != nil {
		return err
	}
	return pushed(tag, entry.Digest.String(), remote.Write(tag, one, login))
}

func pushed(tag name.Tag, digest string, err error) error {
	if err != nil {
		return fmt.Errorf("push to %s: %w", tag, err)
	}
	fmt.Printf("%s@%s\n", tag.Context(), digest)
	return nil
}
