# Loops, functions, arrays, substitutions: builtins alone.
f() { case $1 in *[13579]) r=odd ;; *0) r=${1#?} ;; *) r=even ;; esac; }
i=0 total=0
declare -a list
while [ $i -lt 40000 ]; do
	f $i
	list[i % 100]=$r
	((total += i % 7))
	i=$((i + 1))
done
text=
for word in "${list[@]}"; do text="$text,${word^^}"; done
for ((n = 0; n < 20000; n++)); do x=${text:n % 50:5}; [[ $x == *ODD* ]] && ((total++)); printf -v y '%05d' "$n"; done
echo "$total $y ${#text} ${text//ODD/o}" | { read -r a b; echo "$a $b"; }
