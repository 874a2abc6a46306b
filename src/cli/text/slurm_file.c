/* SPDX-License-Identifier: Apache-2.0 */
/* A batch script of Slurm: a heterogeneous job with a group for each kind of part. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "cli/text/cluster_files.h"

enum { MINUTE = 60, SPARE_MINUTES = 5 /* to start and to stop */ };

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

void rp_cluster_name(const char *text, char out[RP_CLUSTER_NAME_BYTES])
{
    size_t size = 0;

    while (*text != '\0' && !is_letter(*text)) text++;
    for (const char *c = text; *c != '\0' && size + 1 < RP_CLUSTER_NAME_BYTES; c++) {
        if (is_letter(*c))
            out[size++] = (char)(*c | 0x20); /* in lower case */
        else if (*c >= '0' && *c <= '9')
            out[size++] = *c;
        else if (size > 0 && out[size - 1] != '-')
            out[size++] = '-';
    }
    while (size > 0 && out[size - 1] == '-') size--;
    out[size] = '\0';
    if (size == 0) memcpy(out, "reprise", sizeof "reprise");
    assert(strlen(out) < RP_CLUSTER_NAME_BYTES);
}

/* In single quotes no byte has a meaning for a shell but the quote itself. */
static void put_quoted(rp_text_buffer *out, const char *text)
{
    rp_text_buffer_put(out, "'");
    for (size_t n; *text != '\0'; text += n) {
        n = strcspn(text, "'");
        rp_text_buffer_add(out, text, n);
        if (text[n] != '\'') continue;
        rp_text_buffer_put(out, "'\\''");
        n++;
    }
    rp_text_buffer_put(out, "'");
}

/* The groups, numbered from 0 in this order. */
static void put_groups(const rp_cluster_program *p, rp_text_buffer *out)
{
    rp_text_buffer_format(out,
                          "#SBATCH --job-name=%s\n"
                          "#SBATCH --no-kill\n",
                          p->name);
    if (p->seconds > 0)
        rp_text_buffer_format(out, "#SBATCH --time=%" PRId64 "\n",
                              p->seconds / MINUTE + SPARE_MINUTES);
    rp_text_buffer_format(out,
                          "#SBATCH --nodes=%" PRId64 " --ntasks-per-node=1 --cpus-per-task=2\n"
                          "#SBATCH hetjob\n"
                          "#SBATCH --no-kill --ntasks=1 --cpus-per-task=2\n"
                          "#SBATCH hetjob\n"
                          "#SBATCH --no-kill --ntasks=1 --cpus-per-task=1\n"
                          "#SBATCH hetjob\n"
                          "#SBATCH --no-kill --ntasks=%" PRId64 " --cpus-per-task=1\n\n",
                          p->shards, p->actors);
}

static void put_setup(const rp_cluster_program *p, rp_text_buffer *out)
{
    rp_text_buffer_format(out,
                          "set -u -o pipefail\n"
                          "umask 077\n"
                          "reprise=${REPRISE:-reprise}\n"
                          "dir=${REPRISE_DIR:-$PWD/%s-$SLURM_JOB_ID}\n"
                          "port=${REPRISE_PORT:-%d}\n"
                          "program=(",
                          p->name, p->port);
    for (size_t i = 0; i < p->argument_count; i++) {
        if (i > 0) rp_text_buffer_put(out, " ");
        put_quoted(out, p->arguments[i]);
    }
    rp_text_buffer_put(
        out,
        ")\n"
        "mkdir -p \"$dir\" || exit 1\n\n"
        "# One token for all parts; the servers know its hash. Parts get it in their\n"
        "# environment.\n"
        "[ -s \"$dir/token\" ] || od -An -N32 -tx1 /dev/urandom | tr -d ' \\n' > "
        "\"$dir/token\"\n"
        "REPRISE_TOKEN=$(cat \"$dir/token\") || exit 1\n"
        "export REPRISE_TOKEN\n"
        "hash=$(printf %s \"$REPRISE_TOKEN\" | sha256sum | cut -d' ' -f1)\n"
        "printf 'admin parts sha256:%s\\n' \"$hash\" > \"$dir/tokens\"\n\n"
        "replay=$(scontrol show hostnames \"$SLURM_JOB_NODELIST_HET_GROUP_0\" |\n"
        "    sed \"s/\\$/:$port/\" | paste -sd, -) || exit 1\n"
        "echo \"the page of the run: http://${replay%%,*}/ (its token is in $dir/token)\"\n\n");
}

static void put_steps(const rp_cluster_program *p, rp_text_buffer *out)
{
    rp_text_buffer_put(
        out,
        "# The command of a task, restarted until it ends with status 0; 2 is misuse. Its "
        "last\n"
        "# argument is $0 and the number of the task in its group.\n"
        "# shellcheck disable=SC2016 # the shell of the task expands it\n"
        "task='until \"$@\" \"$0$SLURM_PROCID\"; do\n"
        "    status=$?\n"
        "    [ \"$status\" -ne 2 ] || exit 2\n"
        "    echo \"$0$SLURM_PROCID ended with status $status: again\" >&2\n"
        "    sleep 1\n"
        "done'\n\n"
        "# Starts the tasks of a group: group, tasks, last argument, command.\n"
        "steps=()\n"
        "step() {\n"
        "    srun --het-group=\"$1\" --ntasks=\"$2\" --no-kill --kill-on-bad-exit=0 --wait=0 "
        "\\\n"
        "        bash -c \"$task\" \"${@:3}\" &\n"
        "    steps+=($!)\n"
        "}\n\n");
    rp_text_buffer_format(
        out,
        "part=(\"$reprise\" \"${program[@]}\" --of=%" PRId64 " \"--replay=$replay\")\n"
        "step 0 %" PRId64 " \"--data=$dir/replay-\" \"$reprise\" serve \"--listen=:$port\" \\\n"
        "    \"--tokens=$dir/tokens\" --durability=interval --table=job:fifo:1\n"
        "step 3 %" PRId64 " --index= \"${part[@]}\" --role=actor\n"
        "step 1 1 --index= \"${part[@]}\" --role=learner\n"
        "enders=($!)\n"
        "step 2 1 --index= \"${part[@]}\" --role=evaluator \"--dir=$dir\"\n"
        "enders+=($!)\n",
        p->actors, p->shards, p->actors);
    if (p->seconds > 0)
        rp_text_buffer_format(out,
                              "sleep %" PRId64 " &\n"
                              "enders+=($!)\n"
                              "steps+=($!)\n",
                              p->seconds);
    rp_text_buffer_put(out, "trap 'kill \"${steps[@]}\" 2> /dev/null' EXIT\n\n"
                            "# The learner ends after --steps, the evaluator when the task is "
                            "solved.\n"
                            "wait -n \"${enders[@]}\"\n"
                            "status=$?\n"
                            "kill \"${steps[@]}\" 2> /dev/null\n"
                            "wait\n"
                            "exit \"$status\"\n");
}

void rp_cluster_slurm(const rp_cluster_program *p, rp_text_buffer *out)
{
    assert(p->actors >= 1 && p->shards >= 1);
    assert(p->port > 0 && p->port < 65536);
    rp_text_buffer_format(
        out,
        "#!/bin/bash\n"
        "# %s: replay (%" PRId64 "), learner, evaluator and actors (%" PRId64
        "), in this order of groups.\n"
        "# sbatch it. REPRISE_DIR is its folder, which all nodes must see; a "
        "job with the\n"
        "# folder of an earlier one goes on with it. REPRISE is the program.\n",
        p->name, p->shards, p->actors);
    put_groups(p, out);
    put_setup(p, out);
    put_steps(p, out);
}
