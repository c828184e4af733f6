# gdb -x dhole.gdb ./program: faults of shared memory are no stops, and `dhole-main` runs up to the
# program's own main, which `dhole cc` calls dh_main. SIGTRAP is left alone, for breakpoints raise
# it too. Where gdb stops at one that is none of yours, say `signal SIGTRAP`.
handle SIGBUS SIGSEGV nostop noprint pass
define dhole-main
  tbreak dh_main
  run
end
document dhole-main
Runs the program up to its own main.
end
