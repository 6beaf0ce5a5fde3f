#include "algorithms.h"

namespace onesum::algorithms_doc {
namespace {

constexpr Algorithm kOverDevices[] = {
    {"xring", 1,
     "Partial sums go round a ring of all devices until each device holds one finished segment; then the "
     "segments go round. Nobody sends more than anyone else, and only to one neighbour.",
     "Large tensors, `numerics = fast`, links that suffer from many talking at once. Small tensors wait for "
     "every device twice. The only algorithm whose order of additions is not canonical."},
    {"rechd", 1,
     "Recursive halving and doubling: partners exchange halves of what they still hold until each holds one "
     "finished piece, and the same way back. Devices beyond the largest power of two do so among themselves; "
     "what they have is added last.",
     "Small and large tensors over many workers: as few bytes as the ring, in few steps, with canonical "
     "sums. Best where workers are a power of two."},
    {"direct", 1,
     "Every device owns a piece, gets all raw pieces of it, adds them in one pass and sends the sum to "
     "everyone.",
     "Two messages deep whatever the number of devices, with the fewest bytes and canonical sums: the first "
     "choice over a network that lets everyone talk to everyone. The number of messages grows with the "
     "square of the devices."},
    {"exchange", 1, "Everyone sends all it has to every other worker, and adds up everything for itself.",
     "Small tensors of few workers, and of two workers up to some MiB: one message deep, which nothing else "
     "is. What a worker sends grows with the number of workers; over shared memory it is written once."},
    {"pool", 1,
     "Every device owns a piece, as in `direct`, but everyone sends all it has to everyone, which on one "
     "machine is written and announced once; the owners add up their pieces and send the sums to everyone.",
     "Small and medium tensors of many workers on one machine: of n workers each sends 2 messages in place "
     "of n. Over a network it would carry as many bytes as `exchange`."},
    {"doubling", 1,
     "Recursive doubling: partners exchange all that they have added up so far, each time with one twice as "
     "far away. Devices beyond the largest power of two do so among themselves, send what they have to the "
     "others, who add it last, and get the results back.",
     "Small tensors where messages are dear, as over TCP: nobody sends fewer. What a worker sends grows with "
     "the logarithm of the number of workers."},
    {"pscpu", 2,
     "The tensor is cut into shards; each shard is gathered and added on the CPU of one worker, which sends "
     "the sum to everyone. Which CPUs own shards rotates from tensor to tensor.",
     "Many tensors at once, which share the CPUs out among themselves. One large tensor is bound by what "
     "its few owners can send."},
    {"psgpu", 2,
     "The same, gathered on the devices that values are on: the first of every worker, then the second, and "
     "so on.",
     "As `pscpu`, where devices add faster than CPUs."},
    {"hierarchical_copy", 1,
     "The two branches of the canonical tree are each summed at a root, the one root adds the other's sum, "
     "and the result goes back the same way. Roots rotate from pack to pack.",
     "Machines whose devices form two halves with few links between them, and at least as many packs as "
     "devices: then all are roots in turn."},
    {"nccl", 1,
     "NCCL's own all-reduce on GPUs. On other devices our own takes its place: one pass over memory inside "
     "a worker, `direct` across workers. The tables are about these.",
     "GPUs of one machine; on CPUs of one process it is the least that can be done."},
};

constexpr Algorithm kOverWorkers[] = {
    {"nccl/xring", 1,
     "Every worker sums its replicas in the pass that sends the sum; the sums go round a ring of workers.",
     "Large tensors over few, equal links between workers, `numerics = fast`."},
    {"nccl/rechd", 1, "Halving and doubling between workers, each of which brings its replicas' terms.",
     "Many workers; small tensors too."},
    {"nccl/pscpu", 2, "The terms of every worker are gathered on the CPUs of a few workers.",
     "Many small and medium tensors, which share the CPUs out among themselves."},
    {"pscpu/pscpu", 2,
     "The same from CPU to CPU: inside a worker, the CPU speaks for its devices; where these are CPUs "
     "themselves it is `nccl/pscpu`. The default of `MultiWorkerAllReduce`, with two shards.",
     "Where devices cannot speak to other workers themselves."},
    {"nccl/direct", 1, "Every worker owns a piece and gets the terms of all others.",
     "Up to some dozen workers on a network that lets everyone talk to everyone."},
    {"nccl/doubling", 1, "Doubling between workers, each of which brings its replicas' terms.",
     "Small tensors of more than two workers over TCP: what `auto` takes up to 16 KiB for those of one "
     "machine."},
    {"nccl/pool", 1, "Every worker owns a piece, and sends its terms of all pieces to all others at once.",
     "Eight to sixteen workers of one machine, up to 256 KiB: what `auto` takes for them where `exchange` "
     "has too much to add up."},
    {"nccl/exchange", 1, "Every worker gets the terms of all others, and adds up everything.",
     "Small tensors of few workers, and all of two workers that share memory: what `auto` takes for "
     "them."},
};

constexpr Algorithm kOverMachines = {
    "nccl/machines", 1,
    "The workers of a machine share out the tensor in rows and send each other their terms of them; the "
    "owners of a row, one on each machine, do `direct` with what their machines have of it, and hand the "
    "results round. On one machine, and where every worker has its own, it is `direct`.",
    "Several workers on each of several machines, with a network that is slower than memory; `auto` chooses "
    "it there."};

}  // namespace

std::span<const Algorithm> over_devices() { return kOverDevices; }
std::span<const Algorithm> over_workers() { return kOverWorkers; }
Algorithm over_machines() { return kOverMachines; }

}  // namespace onesum::algorithms_doc
