package approval_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/approval"
)

// A cd .. leads back to where the script began if the cd before it cannot fail, and to the directory above it otherwise.
func TestADirectoryThatIsThereLeadsBack(t *testing.T) {
	const home, src = "/home/me", "/home/me/src"
	for _, row := range []struct {
		script, dir  string
		there, other approval.Verdict // where the directories are there, and where none is
	}{
		{"cd sub; ls; cd ..; grep -rn foo .", src, approval.Allow, approval.Ask},
		{"cd sub; ls; cd ..; rg foo", src, approval.Allow, approval.Ask},
		{"cd sub && ls; cd .. && grep -rn foo .", src, approval.Allow, approval.Ask},
		{"cd a/b; ls; cd ../..; grep -rn foo .", src, approval.Allow, approval.Ask},
		{"cd /home/me/src/sub; cd ..; grep -rn foo .", "/x", approval.Allow, approval.Ask},
		{"pushd sub; ls; popd; grep -rn foo .", src, approval.Allow, approval.Allow},
		{"grep -rn foo .", src, approval.Allow, approval.Allow},
		{"cd sub; cd ../..; grep -rn foo .", src, approval.Ask, approval.Ask},
		{"if ls; then cd sub; fi; cd ..; grep -rn foo .", src, approval.Ask, approval.Ask},
		{"ls && cd sub; cd ..; grep -rn foo .", src, approval.Ask, approval.Ask},
		{"cd sub & cd ..; grep -rn foo .", src, approval.Ask, approval.Ask},
		{"cd sub | ls; cd ..; grep -rn foo .", src, approval.Ask, approval.Ask},
		{"(cd sub); cd ..; grep -rn foo .", src, approval.Ask, approval.Ask},
		{"bash -c 'cd sub'; cd ..; grep -rn foo .", src, approval.Ask, approval.Ask},
		{"command cd sub x; cd ..; grep -rn foo .", src, approval.Ask, approval.Ask},
		{`cd "$x"; cd ..; grep -rn foo .`, src, approval.Ask, approval.Ask},
		{"cd a/../..; grep -rn foo .", src, approval.Ask, approval.Ask},
		{"env cd sub; cd ..; grep -rn foo .", src, approval.Ask, approval.Ask},
		{"while ls; do cd ..; done; grep -rn foo .", src, approval.Ask, approval.Ask},
		{"for i in a b; do grep -rn foo .; cd ..; done", src + "/a", approval.Ask, approval.Ask},
		{"cd sub; cd -; cd ..; grep -rn foo .", src, approval.Ask, approval.Ask},
		{`cd sub; cd "$OLDPWD"; cd ..; grep -rn foo .`, src, approval.Ask, approval.Ask},
		{"cd sub; cd ~-; cd ..; grep -rn foo .", src, approval.Ask, approval.Ask},
		{"cd sub; cat .ssh/config", home, approval.Ask, approval.Ask},
		{"ls | rg foo", home, approval.Allow, approval.Allow},
		{"ls | { rg foo; }", home, approval.Allow, approval.Allow},
		{"rg foo", home, approval.Ask, approval.Ask},
		{"rg foo | ls", home, approval.Ask, approval.Ask},
		{"ls | rg foo .", home, approval.Ask, approval.Ask},
		{"ls | rg foo </dev/null", home, approval.Ask, approval.Ask},
		{"ls | rg foo <&2", home, approval.Ask, approval.Ask},
		{"ls | rg foo 0>&2", home, approval.Ask, approval.Ask},
		{"ls | { rg foo & }", home, approval.Ask, approval.Ask},
		{"ls | xargs -I{} rg {}", home, approval.Ask, approval.Ask},
		{"ls | xargs rg foo", home, approval.Ask, approval.Ask},
		{"ls | rg --files", home, approval.Allow, approval.Allow},
		{"ls | rg --files | xargs cat", home, approval.Ask, approval.Ask},
		{"ls | cat <(rg foo)", home, approval.Ask, approval.Ask},
		{"ls | { ls; } && rg foo", home, approval.Ask, approval.Ask},
	} {
		opts := approval.Options{Home: home, Dir: row.dir, Exported: typical.Exported, Directory: func(path string) bool {
			return slices.Contains([]string{home, src, src + "/sub", src + "/a/b"}, path)
		}}
		assert.Equal(t, row.there, approval.Judge(row.script, &opts).Verdict, "%s", row.script)
		opts.Directory = func(string) bool { return false }
		assert.Equal(t, row.other, approval.Judge(row.script, &opts).Verdict, "none is there: %s", row.script)
		opts.Directory = nil
		assert.Equal(t, row.there, approval.Judge(row.script, &opts).Verdict, "nobody looks: %s", row.script)
	}
	assert.Equal(t, approval.Allow, approval.Judge("cd a; cd b; cd c; cd d; cd e; cd f; cd g; cd h; cd i; cat x", &approval.Options{Home: home, Dir: src}).Verdict)
	opts := &approval.Options{Home: home, Dir: src, Exported: func(name string) bool { return name == "CDPATH" }}
	assert.Equal(t, approval.Ask, approval.Judge("cd .ssh; cat config", opts).Verdict, "CDPATH leads elsewhere")
}

// A sandbox that only reads keeps no secret.
func TestSecretsAskInASandbox(t *testing.T) {
	opts := &approval.Options{Contained: true, Home: "/home/me", Dir: "/home/me/src"}
	for _, script := range []string{
		"wc --files0-from /etc/shadow", "wc --files0 ~/.gitconfig", `wc "$x" ~/.ssh/config`, "wc --files0-from=/etc/shadow", `wc --files0-from="$HOME/.ssh/id_ed25519"`, "wc --files0-f=/etc/shadow", "cd ~; wc --files0-from=.config/limpet/rules",
		"x='-l --files0-from=/etc/shadow'; wc $x",
		// That it asks for another reason is not final.
		"/usr//bin/cat .env", "./cat .env", `"$p" .env`, "env -S 'cat .env'", "script -c 'cat .env'", "sh .env", "bash -x .env", "command ./cat .env", `./tool --config=$HOME/.ssh/config`,
		// What may read a variable unseen does not ask.
		`f=/etc/shadow; g() { cat "$f"; }; g`, `f=/etc/shadow; eval 'cat "$f"'`, `f=/etc/shadow; trap 'cat "$f"' EXIT`, `f=/etc/shadow; n=f; cat "${!n}"`, `f=/etc/shadow; command -- \eval 'cat "$f"'`, `f=/etc/shadow; n=(f); cat "${!n[@]%x}"`, `f=/etc/shadow; declare -n r=f; cat "$r"`, `for f in /etc/shadow; do g; done; g() { cat "$f"; }`,
	} {
		assert.NotEqual(t, approval.Allow, approval.Judge(script, opts).Verdict, script)
	}
	for _, script := range []string{"wc -l ~/.ssh/config a", "./cat README.md", `"$p" a`, "env -S 'ls' a", "./build.sh --config=a", "bash -lc 'test -f x/.env'", `f=.env; ls -l "$f"`, `d=~/.ssh; ls "$d"`, `export LC_ALL=C; f=.env; ls "$f"`, `msg="see .env"; echo $msg`} {
		assert.Equal(t, approval.Allow, approval.Judge(script, opts).Verdict, script)
	}
	opts.Live = unchanged()
	opts.Live.Functions = []string{"cat"}
	assert.Equal(t, approval.Ask, approval.Judge("cat .env", opts).Verdict, "cat is a function here")
	assert.Equal(t, approval.Allow, approval.Judge("cat a", opts).Verdict, "cat is a function here")
}

func TestDirectoriesThatAreKeptAreOrdinary(t *testing.T) {
	for _, script := range []string{
		`for d in ~/.config ~/src; do ls "$d"/*; done`, `for p in /proc/{1..20}; do cat "$p/comm"; done`,
		`for f in */; do cat "$f/README"; done`, `for d in / /usr; do df "$d"; done`,
		`for d in src lib; do head -n1 "$d"/*/*; done`, `for d in src lib; do grep -n x "$d"/*/*; done`, `cat "$dir/etc/hosts"; ls "${HOME%/}"`,
		`if [ -z "$u" ]; then u=https://github.com/a/b.git; fi; grep -rn foo "$src"`,
		`for d in ~/.config ~/src; do ls "$d"/*/x; done`, `cat "$PWD/etc/shadow"`, `cat "$x"/src/*.go; cat "$x"/*/*.md`,
		`cat "$repo/dev/src/main.go" "$repo/dev/md/a.md" "$repo/dev/portal.ts" "$repo/dev/loop.go" "$repo/dev/sdk/x" "$repo/dev/memo" "$repo"/dev/m*.go`, `cat "/dev/$x" /dev/std*`,
		`for f in hosts passwd; do cat "/etc/$f"; done`, `for d in config src; do cat "$d/a.go" "docs/$d.md"; done`, `for f in mem root fd; do cat "src/$f.go" "$x/$f"; done`, `for f in status maps; do cat "/proc/$pid/$f"; done`,
		`cat "$env.env" "config/$env.env" "/etc/$x" "$HOME/$x" "$HOME/.config/$x/config.yml" "/home/$u/x" "/$x" "$1/$2" "/tmp/$x"`,
		`name=$(basename "$u" .git); grep -rn foo "$name"`, `echo https://h/a/b.git | xargs -n1 basename; grep -rn foo "$src"`, `echo git@h:a/b.git | xargs -n1 basename; grep -rn foo "$src"`,
		`cd /etc; n=$(ls | wc -l); echo "$n"`, `ls | xargs cat; for f in $(ls); do cat "$f"; done`, `cd /etc; ls -l | head`, `n=$(ls ~/.ssh | wc -l); echo "$n"`,
		`f=.env; ls -l "$f"; echo "${f#.}"; [ -f "${f%x}" ] && ls`, `for d in ~/.ssh; do ls "$d"; done`, `if ls; then msg="see .env"; fi; echo "$msg"`,
		`echo "${HOME#/}" "${HOME##*/}"; grep "${HOME##*/}" /etc/passwd; p=${PWD/#$HOME/\~}; echo "$p"`, `cat "${HOME:+a}" "${HOME:?}/a"; ls "${HOME%/}/src"`,
		`f='a b'; cat $f; o='-k 2'; sort $o a; l='a b c'; for x in $l; do sort "$x"; done; b='  '; cat $b`, `f=a/b.go; cat "${f%.go}_test.go"`,
		`f=.env; [ -f "$f" ] && grep -rn source src; ls -l "$f"; for i in "${!a[@]}"; do echo "$i"; done`, `h=~; ls "$h/bin"; grep -rn trap "$src"`,
		`for s in api web; do cat "$repo/dev/$s/Makefile" "$repo"/dev/m*/main.go; done`, `head -n3 "$repo"/d*/*; cat "$repo"/e*/*`, `for f in "$repo"/d*/*; do wc -l "$f"; done`, `x=ls; command -v "$p"; command ls "$p"; timeout 5 $x a; f=.env; ls "$f"`,
		"git diff | head; git status", "cd sub && ls ./...", "grep -rn foo . | head", "find . -name '*.go' | xargs grep x", `for f in *.go; do wc -l "$f"; done`, `for d in a b; do ls "$d"; done`, "cat .env.example",
	} {
		j := approval.Judge(script, &approval.Options{Home: "/home/me", Dir: "/home/me/src", Exported: typical.Exported, Git: plainGit})
		assert.Equal(t, approval.Allow, j.Verdict, "%s: %v", script, j.Findings)
	}
}
