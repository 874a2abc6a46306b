# SPDX-License-Identifier: Apache-2.0
"""The configurations of the project: how each is built, and which tests run in it."""

import json
import os
import pathlib
import platform
import re
import shutil

import plant
from runner.process import BUILD, MESON, ROOT, STAGE, Result, fixed_addresses, parse_tap, run

JOBS = os.cpu_count() or 2
OTHER_MACHINE = "x86_64" if platform.machine() == "aarch64" else "aarch64"
WAITS = -1  # order of jobs that wait nearly all the time: beside the others, one by one

# How each configuration is built and run. RP_TEST_SCALE tells a long test how much to do: 1 is
# what a plain build manages in a minute. "short" has what differs without --long: "only", the
# programs of tests that are built and run, or single tests of them; "without", the tests not to
# run; "more", the beginnings of names of other programs to build; "bare", true if nothing else is
# built; "more_options" of the build; and "scale".
# Without --long nothing is optimized but libreprise-rl in the release build: most of the rest compiles for
# longer than it runs. So GCC's warnings that need optimization come with --long, and with `make`.
# Sanitized builds have the lines of a stack trace and no more: a fifth of the time to compile. Without
# --long they have the names of functions alone: a sixth of the time.
LINES = "-gline-tables-only"
SANITIZED = ["-Dbuildtype=debugoptimized", "-Doptimization=1", "-Ddebug=false",
             "-Db_lundef=false", "-Dprograms=false", "-Dc_link_args=-fuse-ld=lld",
             "-Dcpp_link_args=-fuse-ld=lld"]
# These checks of UBSan find what ASan finds as well, and take a quarter of the time to compile.
DOUBLE = "-fno-sanitize=null,object-size,pointer-overflow"
# Only --long checks alignment as well: a fifth of the time to compile.
LOOSE = DOUBLE + ",alignment"
# UBSan traps, for which ASan prints a stack, and ASan checks by calls: half of the time to compile.
CALLS = ("'-fsanitize-trap=undefined', "
         "'-mllvm', '-asan-instrumentation-with-call-threshold=0'")
ASAN = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1:malloc_context_size=8:strict_string_checks=1:"
    "allocator_may_return_null=1:"
    "handle_segv=2:handle_sigbus=2:handle_sigfpe=2:handle_sigill=2",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
# Without --long several sources are compiled as one file: a third of the time to compile. tests/meta
# checks what only the compilation of each alone would find (test_includes.py).
JOIN = "-Djoin=30"
UNITS = sorted(f"unit_{module.name}" for module in (ROOT / "tests" / "unit").iterdir())
# Tests whose threads meet in most ways. --long runs those of all other threads as well.
THREADED = [f"{program}/{name}" for program, names in {
    "property": "cut_threads drop threads",
    "unit_client": "batch channel client client_threads client_trouble local_sampler "
                   "local_sink local_source remote_sink remote_source rollouts_local runtime sampler "
                   "sampler_shards shard_sink shared_memory structured_writer trajectory_writer "
                   "trajectory_writer_send",
    "unit_disk": "journal",
    "unit_durable": "flusher full_disk_inserts rollouts store_log tier tier_stop",
    "unit_net": "loop_guests loop_posts",
    "unit_rl_apex": "apex_counts",
    "unit_rl_pal": "box_learners crew dqn_agents dqn_learners profile shared_params team",
    "unit_rollouts": "rollouts_wait",
    "unit_server": "checkpoint_call gate histogram http_page journal_room lease lease_link "
                   "loading memory_guard metrics page_maker page_response queue_budget "
                   "replay_served safety server server_end",
    "unit_store": "rollout_journal",
    "unit_table": "blocking events extension_statistics",
    "unit_util": "mem_pool mutex shared_arena",
}.items() for name in names.split()]
# Tests of what is written to and read from a connection, byte by byte. What HTTP/2 does with streams
# and frames is nghttp2's and ours on any machine.
CODECS = [f"unit_wire/{name}" for name in (
    "block chunk_rekey durability_wire fields frame_meter grpc insert_request insert_request_write "
    "recorded replay_calls reply request_write reverb_calls row_cut run_messages sample_response "
    "sample_response_read shared_samples signature_wire").split()]
BUILDS = {
    "release": {
        "cc": "gcc",
        "options": [f"--prefix={STAGE}", "--libdir=lib", "-Dpython=auto"],
        "scale": 1.0,
        # What kills processes, measures memory, or makes many random runs.
        "short": {
            "only": ["durability_damage", "durability_errors", "durability_exact",
                     "durability_full", "durability_kill", "durability_power", "fault",
                     "property", "unit_durable/reserve", "unit_durable/tier_memory",
                     "unit_rl_agents/dpg_learns", "unit_rl_agents/dqn",
                     "unit_rl_apex", "unit_rl_loop/trainer",
                     "unit_rl_nn/gemm", "unit_rl_pal/rebalance", "unit_server/turn_insert",
                     "unit_server/turn_sample", "unit_server/turn_rollouts",
                     "unit_server/turn_work",
                     "unit_table/memory_budget", "unit_table/sumtree"],
            "more": ["client_driver"],
            "more_options": ["-Doptimization=0", "-Drl_optimization=1", JOIN],
            "scale": 0.05,
        },
    },
    "asan": {
        "cc": "clang",
        "options": SANITIZED
        + ["-Db_sanitize=address,undefined", "-Dpython=auto",
           f"-Dc_args=['{LINES}', '{DOUBLE}', {CALLS}]"],
        "scale": 0.1,
        "env": {**ASAN, "ASAN_OPTIONS": ASAN["ASAN_OPTIONS"] + ":detect_stack_use_after_return=1"},
        "short": {
            "only": ["property", "transport", *UNITS],
            # Only --long finds uses of a stack after its function has returned: that takes a seventh
            # of the time.
            "env": {**ASAN, "ASAN_OPTIONS": ASAN["ASAN_OPTIONS"] + ":detect_stack_use_after_return=0"},
            # The release build runs these, which compute for long, tsan unit_apex_counts and unit_box_learners,
            # and --long alone unit_sac_learns.
            "without": {"unit_apex", "unit_apex_counts", "unit_box_learners", "unit_dpg_learns", "unit_dqn",
                        "unit_memory_budget", "unit_rebalance", "unit_reserve", "unit_sac_learns",
                        "unit_tier_memory", "unit_trainer", "unit_turn_insert", "unit_turn_rollouts",
                        "unit_turn_sample", "unit_turn_work"},
            "more": ["replay_", "wire_echo"],
            "more_options": ["-Doptimization=0", JOIN, f"-Dc_args=['{LOOSE}', {CALLS}]"],
            "scale": 0.025,
        },
    },
    "tsan": {
        "cc": "clang",
        "options": SANITIZED + ["-Db_sanitize=thread", f"-Dc_args={LINES}"],
        "scale": 0.1,
        # Programs that start no thread.
        "without": {"durability_damage", "durability_exact"},
        "env": {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"},
        # What has several threads. asan and the release build run the errors that are injected at
        # each call, one by one.
        "short": {
            "only": THREADED,
            "more_options": ["-Dbox2d=disabled", "-Dcblas=disabled", "-Doptimization=0", JOIN,
                             "-Dc_args="],
            "bare": True,
            "scale": 0.05,
        },
    },
    "plants": {
        "cc": "gcc",
        "options": ["-Dkill_points=true", "-Dprograms=false", "-Doptimization=1",
                    f"-Dc_args=-include {plant.HEADER}"],
        "source": ROOT / "build" / "planted",
        "scale": 1.0,
        "targets": ["test_durability_damage", "test_durability_errors", "test_durability_exact",
                    "test_durability_points", "test_durability_power", "test_unit_table"],
        "tests": {"durability_points"},
    },
    "cross": {
        "cc": None,  # in the cross file
        "options": [f"--cross-file={ROOT}/tools/cross/{OTHER_MACHINE}-linux-gnu.ini",
                    "-Dprograms=false", "-Doptimization=1"],
        "scale": 0.01,
        "wrapper": [f"qemu-{OTHER_MACHINE}"],
        "skip_suites": {"slow"},
        # What depends on the other side of a connection and not on the machine, at length.
        "without": {"unit_remote_sink", "unit_remote_source", "unit_shard_sink", "fault_durable",
                    "property_tier", "unit_queue_budget",
                    # qemu asks the kernel for more descriptors than the program does.
                    "unit_fd_pass"},
        "short": {
            "only": ["unit_buffer", "unit_chunk", "unit_disk/crc32c", "unit_disk/record",
                     "unit_disk/segments", "unit_rl_env", "unit_rl_nn", "unit_table/restore",
                     "unit_table/sumtree", "unit_tensor", "unit_util", *CODECS],
            # The checks of the environments' own states are the same on any machine.
            "without": {"unit_env_check", "unit_mem_pool", "unit_printable"},
            "more_options": ["-Doptimization=0", JOIN],
            "bare": True,
        },
    },
}


def chosen(name, is_long):
    """The settings of a configuration, with or without --long."""
    config = BUILDS[name]
    if is_long or "short" not in config:
        return config
    short = config["short"]
    return {**config, **short,
            "options": [*config["options"], *short.get("more_options", []),
                        "-Donly_tests=" + ",".join(short["only"])]}


def needed(name, where, config, env):
    """The files to build: all, or what is installed, the command and the programs of the tests that
    run."""
    if "only" not in config:
        return config.get("targets", [])
    names = {f"test_{p.partition('/')[0]}" for p in config["only"]}
    more = tuple(config.get("more", []))
    run(["ninja", "-C", where, "build.ninja"], env=env)  # configures again after a change of a meson.build
    status, output = run([MESON, "introspect", "--targets", where])
    assert status == 0, output
    return [os.path.relpath(file, where) for target in json.loads(output)
            if target["name"] in names or target["name"].startswith(more)
            or target["installed"] and not config.get("bare")
            and (name == "release" or target["type"] != "custom") for file in target["filename"]]


def environment(config):
    """The variables of the programs that configure and build."""
    # The system's own Python is the one that has NumPy: tools/need.sh installs it.
    env = {"PATH": f"/usr/bin:{os.environ['PATH']}"}
    if config["cc"]:
        # One C++ file needs the sanitizers of the same compiler.
        env |= {"CC": config["cc"], "CXX": {"gcc": "g++", "clang": "clang++"}[config["cc"]]}
    return env


def configure(name, config):
    """Configures one configuration with warnings as errors. A directory configured with other options
    is made anew."""
    where = BUILD / name
    source = config.get("source", ROOT)
    options = ["-Dwerror=true", "-Dtests=enabled", "-Db_colorout=never"] + config["options"]
    stamp = where / "options.json"
    if source != ROOT:
        try:
            plant.make(source)
        except ValueError as wrong:
            return Result(0, 1, str(wrong))
    if not stamp.exists() or json.loads(stamp.read_text()) != options:
        shutil.rmtree(where, ignore_errors=True)
        status, output = run([MESON, "setup", where, source] + options, env=environment(config))
        if status != 0:
            return Result(0, 1, output)
        stamp.write_text(json.dumps(options))
    return Result(1, 0)


def build(name, config):
    """Builds one configuration, which configure() has configured."""
    where, env = BUILD / name, environment(config)
    status, output = run(["ninja", "-C", where, f"-j{JOBS}", "-k0", *needed(name, where, config, env)], 1800,
                         env)
    progress = r"\A.*?(?=^FAILED: )|^\[\d+/\d+\] [^\n]*\n"
    output = re.sub(progress, "", output, flags=re.DOTALL | re.MULTILINE)
    return Result(1, 0) if status == 0 else Result(0, 1, output)


def test_jobs(name, config, args):
    """One job for each file of tests in a build."""
    where = BUILD / name
    status, output = run([MESON, "introspect", "--tests", where])
    assert status == 0, output
    wrapper = fixed_addresses() if config.get("env") else config.get("wrapper", [])
    programs = {f"test_{p.partition('/')[0]}" for p in config.get("only", [])}
    jobs = []
    for test in json.loads(output):
        suites = {s.split(":")[-1] for s in test["suite"]}
        if suites & config.get("skip_suites", set()):
            continue
        if args.suite and args.suite not in suites:
            continue
        if test["name"] not in config.get("tests", {test["name"]}):
            continue
        if test["name"] in config.get("without", set()):
            continue
        program = pathlib.Path(test["cmd"][0]).name
        if programs and program not in programs:
            continue
        env = {**test["env"], **config.get("env", {}),
               "RP_TEST_SCALE": str(config["scale"] * args.scale)}
        command = wrapper + test["cmd"]

        def job(command=command, env=env):
            status, output = run(command, args.timeout, env, where)
            return parse_tap(status, output, args.timeout)

        # Long ones first, so that the last to finish is a short one.
        order = 0 if "slow" in suites else 1 if "property" in suites else 2
        if test["name"].startswith("durability_kill"):
            order = WAITS
        jobs.append((order, name, test["name"], job))
    return jobs
