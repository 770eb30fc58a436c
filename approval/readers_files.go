package approval

import (
	"slices"
	"strings"
)

const listsFiles = "it lists files, or says what is known of them"

// fileReaders say what files there are, and compute on words.
var fileReaders = []reader{
	{name: "read.ls", reason: listsFiles, programs: "ls dir vdir", most: -1,
		options: optionSet{short: "aAbBcCdDfFgGhHiI:klLmnNopqQrRsStT:uUvw:xXZ1", long: "all almost-all author escape block-size= ignore-backups color? directory dired classify? file-type format= full-time group-directories-first no-group human-readable si " +
			"dereference-command-line dereference hide= hyperlink? indicator-style= inode ignore= kibibytes numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style= reverse recursive size sort= time= time-style= tabsize= width= context zero", whole: true},
		yes: []string{"ls", "ls -la /tmp", "ls *.go", "ls --color=never -t"}, no: []string{"ls --al", "ls > F", "ls ~/.config/limpet"}},
	{name: "read.stat", reason: listsFiles, programs: "stat", most: -1,
		options: optionSet{short: "Lfc:t", long: "dereference file-system format= printf= terse cached=", whole: true},
		yes:     []string{"stat -c %s a"}, no: []string{"stat --form x a"}},
	{name: "read.du", reason: listsFiles, programs: "du", most: -1,
		options: optionSet{short: "0aB:bcDd:HhLklmPSst:X:x", long: "null all apparent-size block-size= bytes total dereference-args max-depth= human-readable inodes dereference no-dereference separate-dirs si summarize threshold= time? time-style= exclude= exclude-from= one-file-system", whole: true},
		yes:     []string{"du -sh *", "du -h --max-depth=1 ."}, no: []string{"du --files0-from=F"}},
	{name: "read.df", reason: listsFiles, programs: "df", most: -1,
		options: optionSet{short: "aB:hHiklPTt:x:v", long: "all block-size= human-readable si inodes local no-sync output? portability print-type type= exclude-type= total", whole: true},
		yes:     []string{"df -h", "df -h ."}, no: []string{"df --nosuch"}},
	{name: "read.path", reason: "it computes with paths", programs: "basename dirname readlink realpath pathchk", most: -1,
		options: optionSet{short: "as:zfemnqvLP", long: "multiple suffix= zero canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose strip no-symlinks logical physical relative-to= relative-base=", whole: true},
		yes:     []string{`basename "$f" .go`, "readlink -f a", `dirname "$0"`}, no: []string{"realpath --nosuch a"}},
	{name: "read.file", reason: listsFiles, programs: "file", most: -1,
		options: optionSet{short: "bEhiIklLnNprsvzZ0F:", long: "brief mime mime-type mime-encoding keep-going dereference no-dereference no-pad print0 raw extension separator="},
		yes:     []string{"file a", "file -b --mime-type a"}, no: []string{"file -C", "file -m F a", "file -f F", "file --compile", "file *"}},
	{name: "read.tree", reason: listsFiles, programs: "tree", most: -1,
		options: optionSet{short: "adfilxL:P:I:CnsphugDFqNQrtcUvA", long: "dirsfirst noreport prune gitignore du si inodes device charset? filelimit? sort?"}, check: treeAllows,
		yes: []string{"tree -L 2", "tree -d -I node_modules src", "tree -aL2", "tree --sort=name -- src"}, no: []string{"tree -o F", "tree -R -H x", "tree *", "tree -Io a F", "tree -PLo a 2 F"}},
	{name: "read.find", reason: "it lists files", programs: "find", own: findAllows,
		yes: []string{"find . -name '*.go'", "find . -type f -size +1M -print0", "find src test \\( -name a -o -name b \\) -prune -o -print", "find . -maxdepth 2 -mtime -1 -printf '%p\\n'", "find . -name '*.go' -exec grep -l x {} +", `find "$PWD" -type d`, "find"},
		no:  []string{"find . -delete", "find . -exec rm {} +", "find . -execdir ./x ';'", "find . -ok rm {} ';'", "find . -fprint F", "find . -fls F", "find . -fprintf F x", "find -files0-from F", `find "$x" -name a`, "find . -name", "find . -exec sh -c 'touch $0' {} ';'"}},
	{name: "read.fd", reason: listsFiles, programs: "fd fdfind", most: -1,
		options: optionSet{short: "HIute:d:E:ap0lFgisL", long: "hidden no-ignore unrestricted type= extension= max-depth= min-depth= exclude= absolute-path full-path print0 glob fixed-strings ignore-case case-sensitive color= follow size= changed-within= changed-before="},
		yes:     []string{"fd -e go", "fd -t f foo src"}, no: []string{"fd -x rm", "fd -X rm", "fd --exec rm", "fd a --exec-batch rm"}},
	{name: "read.locate", reason: listsFiles, programs: "which whereis", most: -1,
		options: optionSet{short: "abms", whole: true},
		yes:     []string{"which go", "which -a go"}, no: []string{"which --nosuch"}},
	{name: "read.numbers", reason: "it computes, and prints", programs: "seq factor numfmt nproc arch tty logname whoami groups users sleep", most: -1,
		options: optionSet{short: "wf:s:d:z", long: "equal-width format= separator= all ignore= to= from= padding= field= header? suffix= grouping", number: true, whole: true},
		yes:     []string{"seq 1 10", "seq -w 5", "sleep 1", "nproc"}, no: []string{"seq --nosuch"}},
	{name: "read.expr", reason: "it computes, and prints", programs: "expr", most: -1, own: always,
		yes: []string{`expr "$a" + 1`, "expr 1 + 1"}, no: []string{"expr $(touch a)"}},
	{name: "read.elf", reason: "it reads a program's file, and prints", programs: "readelf size", most: -1,
		options: optionSet{short: "ahlSseWdVrnu", long: "all file-header program-headers sections section-headers symbols dynamic wide notes relocs"}, check: noList,
		yes: []string{"readelf -h a"}, no: []string{"size @F", "readelf -w a", "readelf --debug-dump a"}},
	{name: "read.tar", reason: "it lists what is in an archive", programs: "tar", most: -1, own: tarAllows,
		yes: []string{"tar tf a.tar", "tar -tzf a.tar.gz", "tar -tvf a.tar", "tar --list -f a.tar"}, no: []string{"tar xf a.tar", "tar -tf host:a", "tar tf a -I cmd", "tar -tf a --to-command=x", "tar tf a --checkpoint=1 --checkpoint-action=exec=x", "tar tf $x", "tar -tf a --use-compress-program=x", "tar tFf a b"}},
	{name: "read.unzip", reason: "it lists what is in an archive", programs: "unzip zipinfo", most: -1,
		options: optionSet{short: "lvZ1t", first: true}, check: needs("unzip", "l", "v", "Z", "t"),
		yes: []string{"unzip -l a.zip", "unzip -l a.zip b 'c/*'"}, no: []string{"unzip a.zip", "unzip -o a.zip", "unzip -l -d x a.zip", "unzip a.zip b -l"}},
}

// noList is for programs of binutils, which read words of theirs in a file that a word names behind an @.
func noList(c *call, _ []option, _ []value) string {
	if slices.ContainsFunc(c.texts(), func(text string) bool { return strings.HasPrefix(text, "@") }) {
		return "it reads more of its words in a file"
	}
	return ""
}

// always is for programs that only compute with their words.
func always(*call) string { return "" }

// treeAllows is for a program that takes the argument of a letter from the next word, whatever stands behind the letter in its own: of -Io that is another
// option.
func treeAllows(c *call, _ []option, _ []value) string {
	for _, text := range c.texts() {
		if text == "--" {
			break
		}
		i := strings.IndexAny(text, "LPI")
		if strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && i > 0 && i+1 < len(text) && !(text[i] == 'L' && isNumber(text[i+1:])) {
			return "what stands behind a letter that wants an argument is another option of tree"
		}
	}
	return ""
}

// needs is for a program that only reads with one of some options, and takes an option behind its first operand for a name.
func needs(program string, names ...string) func(*call, []option, []value) string {
	return func(c *call, options []option, operands []value) string {
		for i, v := range operands {
			if i > 0 && v.mayBeOption() || v.splits {
				return "an option behind the first operand is a name to this program"
			}
		}
		if c.name != program {
			return ""
		}
		for _, o := range options {
			for _, name := range names {
				if o.name == name {
					return ""
				}
			}
		}
		return "without one of the options that only list, it writes files"
	}
}
