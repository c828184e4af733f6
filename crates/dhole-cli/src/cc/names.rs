//! The names of the C library that become dhole's, and the linker's script.

/// Names `x` that become `dh_x`, or `dh_` and what is said, in the program's own object files:
/// `main`, what allocates, what a program waits for, and calls of the system that take or give
/// memory.
const RENAMED: &str = "\
    main exit atexit fork \
    mmap mmap64 munmap mremap mprotect msync madvise posix_madvise mlock munlock sbrk brk \
    setenv unsetenv putenv clearenv setlocale umask pthread_atfork \
    malloc calloc realloc free malloc_usable_size aligned_alloc memalign valloc pvalloc \
    posix_memalign strdup strndup getline getdelim __getdelim \
    pthread_create pthread_join pthread_detach pthread_self pthread_exit pthread_cancel \
    pthread_kill pthread_setaffinity_np pthread_setname_np pthread_mutex_lock \
    pthread_mutex_trylock \
    pthread_mutex_timedlock pthread_mutex_unlock pthread_mutex_destroy pthread_spin_init \
    pthread_spin_destroy pthread_spin_lock pthread_spin_trylock pthread_spin_unlock \
    pthread_cond_init pthread_cond_destroy pthread_cond_wait pthread_cond_timedwait \
    pthread_cond_signal pthread_cond_broadcast pthread_barrier_init pthread_barrier_destroy \
    pthread_barrier_wait pthread_rwlock_init pthread_rwlock_destroy pthread_rwlock_rdlock \
    pthread_rwlock_wrlock pthread_rwlock_tryrdlock pthread_rwlock_trywrlock \
    pthread_rwlock_unlock pthread_once pthread_key_create pthread_key_delete \
    pthread_setspecific pthread_getspecific sem_init sem_destroy sem_post sem_wait sem_trywait \
    sem_timedwait sched_yield \
    sem_clockwait pthread_mutex_clocklock pthread_cond_clockwait pthread_rwlock_timedrdlock \
    pthread_rwlock_timedwrlock pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock \
    pthread_sigmask sigprocmask sigsuspend sigwait sigwaitinfo sigtimedwait ppoll pselect \
    epoll_pwait sigaction sigaltstack signal \
    nanosleep \
    clock_nanosleep sleep usleep pause=pause_for_signal \
    pthread_testcancel pthread_setcancelstate pthread_setcanceltype pthread_getschedparam \
    pthread_setschedparam pthread_setschedprio pthread_getcpuclockid pthread_mutexattr_setrobust \
    sem_open sem_close sem_unlink sem_getvalue \
    thrd_create thrd_join thrd_exit mtx_lock mtx_trylock mtx_timedlock mtx_unlock cnd_wait \
    cnd_timedwait cnd_signal cnd_broadcast call_once tss_create tss_set \
    tss_get tss_delete thrd_detach thrd_current thrd_yield \
    read write pread pwrite pread64 pwrite64 readv writev recv send recvfrom sendto \
    fread fwrite fputs puts setvbuf setbuf clock_gettime getrusage getrlimit times uname fstat \
    pipe wait waitpid poll \
    open open64 creat access unlink remove rmdir mkdir chdir truncate opendir system fopen \
    fopen64 freopen freopen64 popen rename stat lstat getcwd gethostname \
    stat64 lstat64 fstat64 creat64 truncate64 getrlimit64";

/// Names `x` that become `dhole_does_not_have_x`, so that the linker refuses them by name:
/// functions on threads and locks of the C library's own, which are not those of dhole.
const REFUSED: &str = "\
    pthread_tryjoin_np pthread_timedjoin_np pthread_clockjoin_np pthread_getaffinity_np \
    pthread_getname_np pthread_getattr_np pthread_sigqueue shmat";

/// Orders for `objcopy` that rename them all.
pub fn orders() -> String {
    let named = renamed().map(|(name, new)| format!("--redefine-sym {name}=dh_{new}\n"));
    let refused = REFUSED.split_whitespace();
    let refused = refused.map(|name| format!("--redefine-sym {name}=dhole_does_not_have_{name}\n"));
    named.chain(refused).collect()
}

/// The names that are renamed, and what stands behind `dh_`.
fn renamed() -> impl Iterator<Item = (&'static str, &'static str)> {
    let names = RENAMED.split_whitespace();
    names.map(|name| name.split_once('=').unwrap_or((name, name)))
}

/// Whether a name is one that a renamed one has become.
pub fn is_renamed(name: &str) -> bool {
    let before = name.strip_prefix("dh_");
    before.is_some_and(|before| renamed().any(|(_, new)| new == before))
}

/// The linker's script: the program's own globals in whole pages apart from all others, each on a
/// page of its own unless they are packed. Those that are zero take no room in the file.
pub fn script(packs: bool, shares_stacks: bool) -> String {
    let each = if packs { "" } else { " SUBALIGN(4096)" };
    let shares_stacks = u8::from(shares_stacks);
    format!(
        "__dhole_shared_stacks = {shares_stacks};\n\
         SECTIONS {{ .dhole_data ALIGN(4096) :{each} {{ __dhole_data_start = .; \
         *(.dhole.data .dhole.data.*) . = ALIGN(4096); __dhole_data_end = .; }} }} \
         INSERT BEFORE .data;\n\
         SECTIONS {{ .dhole_bss (NOLOAD) : ALIGN(4096){each} {{ __dhole_bss_start = .; \
         *(.dhole.bss .dhole.bss.*) . = ALIGN(4096); __dhole_bss_end = .; }} }} \
         INSERT AFTER .bss;\n"
    )
}
