package secret

// Separate says whether owners must not learn the secrets of others. login is the one who may: that of this process. See For.
func (k *Known) Separate(on bool, login string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.separate, k.login = on, login
}

// Share makes the secrets that are given out from now on known to all that share the same Known, such as those of the databases
// of one process. Where a secret was not given out, it is hidden only as a whole: the owners of jobs there could otherwise guess
// it letter by letter.
func (k *Known) Share(with *Known) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shared = with
}

// For returns what hides the secrets in a text of an owner's job. Of an owner who is separate, that is only what was added by it:
// who writes a text, and sees which parts of it were hidden, could otherwise guess the secrets of others letter by letter. That
// holds for each owner, known to this host or not: something is recorded, too, about jobs that are not executed here.
// For the same reason, a secret that the owner can use, but not read, is hidden only as a whole: not its rest at a cut, nor its
// beginning.
func (k *Known) For(owner string) *Known {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.separate || owner == "" || owner == k.login {
		return k
	}
	if k.of[owner] == nil {
		if k.of == nil {
			k.of = map[string]*Known{}
		}
		k.of[owner] = &Known{whole: k}
	}
	return k.of[owner]
}
