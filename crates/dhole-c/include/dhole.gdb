# gdb -x dhole.gdb ./program: faults of shared memory are not stops, and `dhole-main` stops at the
# program's main, which `dhole cc` calls dh_main.
handle SIGBUS SIGSEGV SIGTRAP nostop noprint pass
define dhole-main
  tbreak dh_main
  run
end
document dhole-main
Runs the program up to its own main.
end
