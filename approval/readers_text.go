package approval

import "strings"

const (
	readsFiles = "it only reads files, and prints"
	sumLong    = "binary check tag text zero ignore-missing quiet status strict warn length="
)

// textReaders print what is in files. Their options are those of GNU coreutils, grep and diffutils.
var textReaders = []reader{
	{name: "read.cat", reason: readsFiles, programs: "cat", most: -1,
		options: optionSet{short: "AbeEnstTuv", long: "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting", whole: true},
		yes:     []string{"cat a", "cat -n *.go", `cat "$f"`, "cat -- -x"}, no: []string{"cat --nosuch a", "cat ~/.ssh/id_rsa", "cat /proc/1/environ", "cat .env"}},
	{name: "read.head", reason: readsFiles, programs: "head", most: -1,
		options: optionSet{short: "c:n:qvz", long: "bytes= lines= quiet silent verbose zero-terminated", number: true, whole: true},
		yes:     []string{"head -5 a", "head -n 20 a b", "head -c100 a"}, no: []string{"head --lin 5 a"}},
	{name: "read.tail", reason: readsFiles, programs: "tail", most: -1,
		options: optionSet{short: "c:n:fFqs:vz", long: "bytes= lines= follow? retry pid= sleep-interval= quiet silent verbose zero-terminated", number: true, whole: true},
		yes:     []string{"tail -f a", "tail -n +2 a", "tail -1 a"}, no: []string{"tail -x a"}},
	{name: "read.wc", reason: readsFiles, programs: "wc", most: -1,
		options: optionSet{short: "cmlLw", long: "bytes chars lines max-line-length words total=", whole: true},
		yes:     []string{"wc -l *"}, no: []string{"wc --files0-from=- "}},
	{name: "read.cut", reason: readsFiles, programs: "cut", most: -1,
		options: optionSet{short: "b:c:d:f:nsz", long: "bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated", whole: true},
		yes:     []string{"cut -d: -f1 /etc/passwd", "cut -c1-5 a"}, no: []string{"cut -q a"}},
	{name: "read.tr", reason: "it reads standard input, and prints", programs: "tr", most: -1,
		options: optionSet{short: "cCdst", long: "complement delete squeeze-repeats truncate-set1", whole: true},
		yes:     []string{"tr a-z A-Z <a", `tr -d '\n' <a`}, no: []string{"tr -x a b"}},
	{name: "read.lines", reason: readsFiles, programs: "tac rev nl fold expand unexpand fmt comm od hexdump hd tsort pr", most: -1,
		options: optionSet{short: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", long: "", whole: true},
		yes:     []string{"tac a", "nl -ba a", "comm -12 a b", "od -An -tx1 a", "fold -w 80 a"}, no: []string{"tac --nosuch a", "pr --nosuch a"}},
	{name: "read.paste", reason: readsFiles, programs: "paste", most: -1,
		options: optionSet{short: "d:sz", long: "delimiters= serial zero-terminated", whole: true},
		yes:     []string{"paste -sd, a", "paste a b"}, no: []string{"paste --nosuch a"}},
	{name: "read.column", reason: readsFiles, programs: "column", most: -1,
		options: optionSet{short: "ts:o:c:xneN:R:H:", long: "table separator= output-separator= output-width= fillrows table-columns= table-right= table-hide= json", whole: true},
		yes:     []string{"column -t -s, a"}, no: []string{"column --nosuch a"}},
	{name: "read.join", reason: readsFiles, programs: "join", most: -1,
		options: optionSet{short: "a:e:ij:1:2:o:t:v:z", long: "ignore-case check-order nocheck-order header zero-terminated", whole: true},
		yes:     []string{"join -t: -1 2 a b"}, no: []string{"join --nosuch a b"}},
	{name: "read.sum", reason: readsFiles, programs: "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum", most: -1,
		options: optionSet{short: "bcltzwrsa:", long: sumLong + " algorithm= untagged raw base64", whole: true},
		yes:     []string{"md5sum *", "sha256sum -c sums"}, no: []string{"md5sum --nosuch a"}},
	{name: "read.cmp", reason: readsFiles, programs: "cmp", most: -1,
		options: optionSet{short: "bi:ln:s", long: "print-bytes ignore-initial= verbose bytes= quiet silent", whole: true},
		yes:     []string{"cmp -s a b"}, no: []string{"cmp -x a b"}},
	{name: "read.diff", reason: readsFiles, programs: "diff", most: -1,
		options: optionSet{short: "abBcC:dEeI:iNnpqrsTtU:uwW:x:X:yZ", long: "brief report-identical-files unified? context? side-by-side width= recursive ignore-all-space ignore-space-change ignore-blank-lines " +
			"ignore-case ignore-matching-lines= new-file text exclude= color? minimal suppress-common-lines no-dereference ed normal rcs show-c-function show-function-line= label= strip-trailing-cr unidirectional-new-file speed-large-files tabsize= expand-tabs initial-tab", number: true, whole: true},
		yes: []string{"diff -u a b", "diff -rq a b", "diff <(sort -- a) <(sort -- b)"}, no: []string{"diff -l a b", "diff --paginate a b", "diff <(touch a) b"}},
	{name: "read.grep", reason: readsFiles, programs: "grep egrep fgrep", most: -1,
		options: optionSet{short: "EFGPe:f:iyvwxcLlm:oqsbHhnTzA:B:C:aIUrRD:d:u", long: "extended-regexp fixed-strings basic-regexp perl-regexp regexp= file= ignore-case no-ignore-case invert-match word-regexp line-regexp count color? colour? " +
			"files-without-match files-with-matches max-count= only-matching quiet silent no-messages byte-offset with-filename no-filename label= line-number initial-tab null after-context= before-context= context= text binary-files= " +
			"recursive dereference-recursive devices= directories= exclude= exclude-dir= include= line-buffered null-data binary", number: true, whole: true},
		yes: []string{"grep -rn foo .", `grep -E "$x" *.go`, "grep -rn --include='*.go' x .", "grep -5 a b", "grep -v '^#' a | wc -l", "grep -vf F a", "grep --file=F a"}, no: []string{"grep -f ~/.ssh/id_rsa a", "grep -f~/.ssh/id_rsa a", "grep --file=/root/.ssh/id_rsa a", "grep -f - a <~/.netrc", "grep -r x /", "grep --inc='*' a b", "grep --nosuch a"}},
	{name: "read.gofmt", reason: readsFiles, programs: "gofmt", most: -1,
		options: optionSet{short: "lds"},
		yes:     []string{"gofmt -l .", "gofmt -s -d a.go"}, no: []string{"gofmt -w .", "gofmt -lw .", "gofmt -w=true .", "gofmt -cpuprofile F a.go", "gofmt --w a.go"}},
	{name: "read.rg", reason: readsFiles, programs: "rg", most: -1,
		options: optionSet{short: "nNHIliwxvcoFPSsuUqabLpe:g:t:T:A:B:C:m:M:j:d:0.", long: "line-number no-line-number with-filename no-filename files-with-matches files-without-match ignore-case smart-case case-sensitive word-regexp line-regexp " +
			"invert-match count count-matches only-matching fixed-strings pcre2 multiline quiet text follow hidden no-ignore no-ignore-vcs no-heading heading pretty color= colors= column files glob= iglob= type= type-not= type-list after-context= " +
			"before-context= context= max-count= max-columns= max-depth= max-filesize= regexp= sort= sortr= stats json vimgrep trim null no-messages unrestricted threads= replace= passthru no-config"},
		yes: []string{"rg -n foo", "rg --files", "rg -t go -e foo -- x", "rg foo -g '*.go' src"}, no: []string{"rg --pre cat x", "rg --hostname-bin=x a", "rg -z x", "rg --search-zip x", `rg "$x"`, "rg -f F"}},
	{name: "read.sort", reason: readsFiles, programs: "sort", most: -1,
		options: optionSet{short: "bdfgiMhnRrVcCmsuzk:t:S:", long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort reverse sort= version-sort check? merge stable unique zero-terminated key= field-separator= buffer-size= parallel= debug"},
		yes:     []string{"sort a", "ls | sort -rn", "sort -t: -k2,2n a", "sort -- *", "sort ./*"}, no: []string{"sort *", "sort -o F a", "sort -oF a", "sort -roF a", "sort --out=F a", "sort --output F a", "sort --compress-program=x a", "sort -T d a", "sort --files0-from=F", `sort "$x"`}},
	{name: "read.uniq", reason: readsFiles, programs: "uniq", most: 1,
		options: optionSet{short: "cdDf:is:uw:z", long: "count repeated all-repeated? skip-fields= group? ignore-case skip-chars= unique zero-terminated check-chars="},
		yes:     []string{"sort a | uniq -c", "uniq a"}, no: []string{"uniq a b", "uniq *", "uniq -- *", "uniq -c a b", "uniq $x"}},
	{name: "read.xxd", reason: readsFiles, programs: "xxd", most: 1,
		options: optionSet{short: "abc:eEg:iIl:no:pPs:uC", first: true},
		yes:     []string{"xxd a", "xxd -p a", "xxd -c 8 -l 16 -- a"}, no: []string{"xxd a b", "xxd -r a", "xxd -r -p a b", "xxd a -b"}, check: onlySingle},
	{name: "read.shuf", reason: readsFiles, programs: "shuf", most: -1,
		options: optionSet{short: "ei:n:rz", long: "echo input-range= head-count= repeat zero-terminated"},
		yes:     []string{"shuf -n 5 a"}, no: []string{"shuf -o F a", "shuf --out F a"}},
	{name: "read.base64", reason: readsFiles, programs: "base64 base32", most: 1,
		options: optionSet{short: "diw:", long: "decode ignore-garbage wrap="},
		yes:     []string{"base64 -w0 a", "echo x | base64 -d"}, no: []string{"base64 -o F a", "base64 --output=F a"}},
	{name: "read.iconv", reason: readsFiles, programs: "iconv", most: -1,
		options: optionSet{short: "f:t:lcs", long: "from-code= to-code= list silent"},
		yes:     []string{"iconv -f latin1 -t utf8 a"}, no: []string{"iconv -o F a", "iconv --output=F a"}},
	{name: "read.strings", reason: readsFiles, programs: "strings", most: -1,
		options: optionSet{short: "an:t:e:fw", long: "all bytes= radix= encoding= print-file-name", number: true}, check: noList,
		yes: []string{"strings -n 8 a"}, no: []string{"strings @F", "strings -T x a", "strings --target=x a"}},
	{name: "read.zcat", reason: "it unpacks to its output", programs: "zcat bzcat xzcat zstdcat lzcat gzcat", most: -1,
		options: optionSet{short: "fqv", long: "force quiet"},
		yes:     []string{"zcat a.gz | head"}, no: []string{"zcat --nosuch a", "zcat *"}},
}

// onlySingle is for programs whose options of several letters begin with one dash.
func onlySingle(c *call, options []option, _ []value) string {
	for _, text := range c.texts() {
		if strings.HasPrefix(text, "-") && len(text) > 2 && !isNumber(strings.TrimLeft(text[2:], " ")) {
			return "the option " + text + " is not known to change nothing"
		}
	}
	return ""
}
