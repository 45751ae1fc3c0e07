#!/usr/bin/env python3
"""Files as torch.save writes them, made without PyTorch; good ones and hostile ones. Used by test_torchfile.py.

python3 tests/torch_files.py FOLDER writes the corpus of the fuzz target torchfile.

The pickle comes from Python's own pickler, which PyTorch uses too: `torch` and `torch._utils` are stand-ins here, whose
functions have the right names. scripts/golden-torch makes files with the real one.
"""
import collections
import io
import pathlib
import pickle
import struct
import sys
import types
import zlib

sys.dont_write_bytecode = True
SIZES = {"Float": ("<f", 4), "Half": ("<e", 2), "BFloat16": (None, 2), "Double": ("<d", 8), "Long": ("<q", 8), "Int": ("<i", 4),
         "Byte": ("<B", 1), "Bool": ("<B", 1), "Short": ("<h", 2)}


# --- Stand-ins for PyTorch

def stand_in(module, name, kind=None):
    thing = types.FunctionType((lambda *a: None).__code__, {}) if kind is None else type(name, (), {})
    thing.__module__, thing.__name__, thing.__qualname__ = module, name, name
    setattr(sys.modules[module], name, thing)
    return thing


for _module in ("torch", "torch._utils"):
    sys.modules[_module] = types.ModuleType(_module)
sys.modules["torch"]._utils = sys.modules["torch._utils"]
REBUILD = stand_in("torch._utils", "_rebuild_tensor_v2")
PARAMETER = stand_in("torch._utils", "_rebuild_parameter")
CLASSES = {kind: stand_in("torch", f"{kind}Storage", type) for kind in SIZES}


class Storage:
    def __init__(self, kind, values, count=None):
        self.kind, self.count = kind, len(values) if count is None else count
        code, size = SIZES[kind]
        if code:
            self.bytes = b"".join(struct.pack(code, value) for value in values)
        else:
            self.bytes = b"".join(struct.pack("<f", value)[2:] for value in values)


class Tensor:
    """A view of a storage. Strides None: row after row."""
    def __init__(self, storage, shape, offset=0, strides=None, parameter=False, more=()):
        self.storage, self.shape, self.offset, self.parameter, self.more = storage, tuple(shape), offset, parameter, tuple(more)
        if strides is None:
            strides, step = [], 1
            for size in reversed(self.shape):
                strides.insert(0, step)
                step *= max(size, 1)
        self.strides = tuple(strides)

    def __reduce_ex__(self, protocol):
        if self.parameter:
            return PARAMETER, (Tensor(self.storage, self.shape, self.offset, self.strides), True, collections.OrderedDict())
        return REBUILD, (self.storage, self.offset, self.shape, self.strides, False, collections.OrderedDict(), *self.more)


class Pickler(pickle.Pickler):
    def __init__(self, file, protocol, storages):
        super().__init__(file, protocol)
        self.storages, self.keys = storages, {}

    def persistent_id(self, thing):
        if not isinstance(thing, Storage):
            return None
        key = self.keys.setdefault(id(thing), str(len(self.keys)))
        self.storages[key] = thing
        return "storage", CLASSES[thing.kind], key, "cpu", thing.count


# --- The zip file

class Entry:
    def __init__(self, name, data, method=0, flags=0x0808, local=None, crc=None, size=None, offset=None):
        self.name, self.data, self.method, self.flags, self.local, self.offset = name, data, method, flags, local or name, offset
        self.crc = zlib.crc32(data) if crc is None else crc
        self.size = len(data) if size is None else size


def zip_file(entries, long=True, comment=b"", wrong_end=0, far=False):
    """As PyTorch's writer: data at multiples of 64 bytes, sizes behind the data, the 64-bit end too (long)."""
    out, directory = b"", b""
    for e in entries:
        name, data = e.local.encode(), e.data
        at = len(out) if e.offset is None else e.offset
        if e.offset is None:
            padding = -(len(out) + 30 + len(name) + 4) % 64
            extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
            described = e.flags & 8
            out += struct.pack("<4s5H3I2H", b"PK\3\4", 20, e.flags, e.method, 0, 0, 0 if described else e.crc,
                               0 if described else e.size, 0 if described else e.size, len(name), len(extra)) + name + extra + data
            if described:
                out += struct.pack("<4s3I", b"PK\7\x08", e.crc, e.size, e.size)
        extra, sizes, place = b"", (e.size, e.size), at
        if far:
            extra, sizes, place = struct.pack("<2H3Q", 1, 24, e.size, e.size, at), (2**32 - 1, 2**32 - 1), 2**32 - 1
        directory += struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, e.flags, e.method, 0, 0, e.crc, *sizes, len(e.name.encode()), len(extra),
                                 0, 0, 0, 0, place) + e.name.encode() + extra
    begin = len(out) + wrong_end
    out += directory
    count, size = len(entries), len(directory)
    if long:
        out += struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, begin)
        out += struct.pack("<4sIQI", b"PK\6\7", 0, len(out) - 56, 1)
    return out + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, size, begin, len(comment)) + comment


def entries(tensors, protocol=2, folder="pytorch_model", order=b"little"):
    storages, file = {}, io.BytesIO()
    Pickler(file, protocol, storages).dump(tensors)
    yield Entry(f"{folder}/data.pkl", file.getvalue())
    if order:
        yield Entry(f"{folder}/byteorder", order)
    for key, storage in storages.items():
        yield Entry(f"{folder}/data/{key}", storage.bytes)
    yield Entry(f"{folder}/version", b"3\n")
    yield Entry(f"{folder}/.data/serialization_id", b"1234567890")


def torch_save(tensors, protocol=2, **options):
    return zip_file(list(entries(tensors, protocol)), **options)


def with_pickle(instructions, *more):
    """A file whose pickle consists of these bytes."""
    return zip_file([Entry("archive/data.pkl", instructions), *more])


# --- Samples

def good():
    """name -> bytes of files that are read."""
    whole = Storage("Float", [k / 8 for k in range(24)])
    ordered = collections.OrderedDict((f"layer.{i}.weight", Tensor(Storage("Float", [i, i + 0.5]), (2,))) for i in range(3))
    ordered._metadata = collections.OrderedDict({"": {"version": 1}, "layer.0": {"version": 2}})
    every = {kind: Tensor(Storage(kind, [0, 1, 1, 0]), (2, 2)) for kind in SIZES if kind != "Short"}
    views = {"whole": Tensor(whole, (6, 4)), "tied": Tensor(whole, (6, 4)), "transposed": Tensor(whole, (4, 6), 0, (1, 4)),
             "rows": Tensor(whole, (3, 4), 0, (8, 1)), "slice": Tensor(whole, (2, 2), 5, (4, 1)), "tail": Tensor(whole, (2, 4), 16)}
    odd = {"scalar": Tensor(Storage("Float", [2.5]), ()), "empty": Tensor(Storage("Float", []), (0, 3)),
           "one": Tensor(Storage("Half", [1.0]), (1, 1), 0, (77, 99)), "parameter": Tensor(whole, (24,), parameter=True),
           "more": Tensor(whole, (3,), 1, more=[None])}
    return {"every_type": torch_save(every), "ordered": torch_save(ordered), "views": torch_save(views), "odd": torch_save(odd),
            "protocol4": torch_save(every, protocol=4), "protocol5": torch_save(ordered, protocol=5),
            "short_end": torch_save(views, long=False), "far": torch_save(views, far=True), "nothing": torch_save({}),
            "no_order": zip_file(list(entries(views, order=None))), "many": torch_save({f"t{i}": Tensor(whole, (2,), i % 20) for i in range(60)})}


def hostile():
    """name -> (bytes, what the message says)."""
    def one(**changes):
        options = dict(shape=(2, 2), offset=0, strides=None)
        options.update(changes)
        return torch_save({"t": Tensor(options.pop("storage", Storage("Float", [1, 2, 3, 4])), **options)})

    t = Tensor(Storage("Float", [1, 2, 3, 4]), (2, 2))
    plain = list(entries({"t": t}))
    valid = plain[0].data

    def changed(number, **changes):
        """A good file, of which one entry's parts are changed."""
        e = plain[number]
        options = dict(name=e.name, data=e.data)
        options.update(changes)
        return zip_file([Entry(**options) if i == number else other for i, other in enumerate(plain)])

    call = b"\x80\x02cos\nsystem\n(X\x02\x00\x00\x00idtR."
    return {
        "os_system": (with_pickle(call), "calls os.system: not read"),
        "stack_system": (with_pickle(b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R."), "calls os.system: not read"),
        "builtin_eval": (with_pickle(b"\x80\x02c__builtin__\neval\n(X\x03\x00\x00\x001+1tR."), "calls __builtin__.eval: not read"),
        "hidden_call": (with_pickle(b"\x80\x02}X\x01\x00\x00\x00acos\nsystem\nX\x02\x00\x00\x00id\x85Rs."), "calls os.system: not read"),
        "odd_name": (with_pickle(b"\x80\x02c\x1b[2J\nx y\n."), "calls ?[2J.x?y: not read"),
        "instance": (with_pickle(b"\x80\x02(ios\nsystem\n."), "the instruction INST: not read"),
        "new_object": (with_pickle(b"\x80\x02ccollections\nOrderedDict\n)\x81."), "the instruction NEWOBJ: not read"),
        "build_tensor": (with_pickle(b"\x80\x02)}b."), "an object is given a state: not read"),
        "dict_of_arguments": (with_pickle(b"\x80\x02ccollections\nOrderedDict\nK\x01\x85R."), "a dictionary is made of arguments"),
        "extension": (with_pickle(b"\x80\x02\x82\x01."), "the instruction EXT1: not read"),
        "text_number": (with_pickle(b"\x80\x02I99999999999999999999\n."), "the instruction INT: not read"),
        "long_number": (with_pickle(b"\x80\x02\x8a\x09" + b"\xff" * 9 + b"."), "more than 64 bits"),
        "far_memo": (with_pickle(b"\x80\x02}r\xff\xff\xff\xff."), "the memo is not filled in order"),
        "no_memo": (with_pickle(b"\x80\x02h\x07."), "the pickle is damaged"),
        "no_stop": (with_pickle(b"\x80\x02}"), "the pickle is truncated"),
        "behind_stop": (with_pickle(b"\x80\x02}.}"), "the pickle is damaged"),
        "two_values": (with_pickle(b"\x80\x02}}."), "the pickle is damaged"),
        "mark_left": (with_pickle(b"\x80\x02(."), "the pickle is damaged"),
        "no_mark": (with_pickle(b"\x80\x02}t."), "the pickle is damaged"),
        "odd_items": (with_pickle(b"\x80\x02}(K\x01u."), "the pickle is damaged"),
        "set_in_tuple": (with_pickle(b"\x80\x02)K\x01K\x02s."), "the pickle is damaged"),
        "call_a_number": (with_pickle(b"\x80\x02K\x01)R."), "the pickle is damaged"),
        "long_string": (with_pickle(b"\x80\x02X\xff\xff\xff\x7fabc."), "the pickle is damaged"),
        "unknown": (with_pickle(b"\x80\x02\xff."), "there is no instruction 0xff"),
        "protocol_0": (with_pickle(b"(dp0\n."), "no pickle of protocol 2"),
        "protocol_9": (with_pickle(b"\x80\x09}."), "only protocols 2 to 5"),
        "proto_twice": (with_pickle(b"\x80\x02\x80\x02}."), "the pickle is damaged"),
        "frame": (with_pickle(b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f}."), "the pickle is damaged"),
        "itself": (with_pickle(b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s."), 'tensor "a" is none'),
        "nested": (torch_save({"state_dict": {"t": t}, "epoch": 3}), 'tensor "state_dict" is none'),
        "a_list": (torch_save([t]), "the instruction EMPTY_LIST: not read"),
        "a_tuple": (torch_save((t,)), "holds no dictionary of tensors"),
        "not_named": (torch_save({7: t}), "a tensor's name is no text"),
        "control_name": (torch_save({"a\nb": t}), "a tensor's name is no text"),
        "long_name": (torch_save({"n" * 1001: t}), "a tensor's name is no text"),
        "twice": (with_pickle(b"\x80\x02}(" + 2 * (b"X\x01\x00\x00\x00t" + call_tensor()) + b"u.",
                              Entry("archive/data/0", struct.pack("<4f", 1, 2, 3, 4))), 'tensor "t" is there twice'),
        "negative_stride": (one(strides=(-2, 1)), "none negative"),
        "negative_size": (one(shape=(-2, 2), strides=(2, 1)), "none negative"),
        "negative_offset": (one(offset=-1), "of a form that is not read"),
        "beyond": (one(offset=1), "lies outside its storage"),
        "large": (one(shape=(2**31, 2**31), strides=(2**31, 1)), "lies outside its storage"),
        "overflow": (one(shape=(2**62, 2**62, 2**62), strides=(1, 1, 1)), "lies outside its storage"),
        "far_stride": (one(shape=(2, 2), strides=(2**62, 2**62)), "lies outside its storage"),
        "repeated": (one(shape=(1000, 1000), strides=(0, 0)), "has more values than it"),
        "nine_dimensions": (one(shape=(1,) * 9), "up to 8 numbers"),
        "other_rank": (one(strides=(1,)), "none negative"),
        "wrong_count": (one(storage=Storage("Float", [1, 2, 3, 4], count=5)), "has 16 bytes, not 5 values of 4"),
        "huge_count": (one(storage=Storage("Float", [1, 2, 3, 4], count=2**62)), "has 16 bytes, not"),
        "conjugated": (one(more=[{"conj": True}]), "of a form that is not read"),
        "short_type": (one(storage=Storage("Short", [1, 2, 3, 4])), "calls torch.ShortStorage: not read"),
        "no_storage": (zip_file([e for e in plain if "/data/" not in e.name]), "in a storage that the file does not have"),
        "big_endian": (zip_file(list(entries({"t": t}, order=b"big"))), "not little-endian"),
        "compressed": (changed(0, data=zlib.compress(valid)[2:-4], method=8), "is compressed"),
        "encrypted": (changed(0, flags=0x0809), "is encrypted"),
        "wrong_crc": (changed(2, crc=1), "its CRC-32 is another"),
        "wrong_size": (changed(2, size=2**31), "is longer than the file has room for"),
        "other_name": (changed(2, local="pytorch_model/data/1"), "has another name where it lies"),
        "elsewhere": (changed(2, offset=3), "is not where the zip file's directory says"),
        "outside": (changed(2, offset=2**32 - 2), "is not where the zip file's directory says"),
        "same_bytes": (zip_file(plain + [Entry(plain[0].name, valid, offset=0)]), "shares bytes with the one before it"),
        "entry_twice": (zip_file(plain + [plain[2]]), "is there twice"),
        "wrong_end": (torch_save({"t": t}, wrong_end=5), "does not end where it says"),
        "wrong_short_end": (torch_save({"t": t}, wrong_end=5, long=False), "does not end where it says"),
        "comment": (torch_save({"t": t}, comment=b"hello"), "no zip file ends here"),
        "truncated": (torch_save({"t": t})[:-30], "no zip file ends here"),
        "no_pickle": (zip_file([Entry("a/b", b"c")]), "there is no FOLDER/data.pkl"),
        "empty_zip": (zip_file([], long=False), "there is no FOLDER/data.pkl"),
        "not_zip": (b"x", "does not begin as a zip file"),
        "legacy": (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", "before version 1.6"),
    }


def call_tensor():
    """Instructions that make a tensor of storage 0."""
    return (b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
            b"K\x00K\x02K\x02\x86K\x02K\x01\x86\x89ccollections\nOrderedDict\n)RtR")


def claims():
    """Many views of one storage, more than a file of this size can need."""
    whole = Storage("Float", [0] * 20000)
    return torch_save({f"t{i}": Tensor(whole, (20000,)) for i in range(40)})


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, contents in {**good(), **{name: pair[0] for name, pair in hostile().items()}}.items():
        (folder / name).write_bytes(contents)


if __name__ == "__main__":
    main()
