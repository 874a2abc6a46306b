# SPDX-License-Identifier: Apache-2.0
"""Messages without protobuf: attributes, presence, bytes, and a TableInfo from bytes."""

import collections
import copy
import pickle
import re

import numpy as np
import pytest

from reprise import proto_text, protos, reverb_types, specs
from reprise.cc import schema_pb2
from reprise.cc.checkpointing import checkpoint_pb2

Options = protos.KeyDistributionOptions


def info_message():
    return protos.RateLimiterInfo(
        samples_per_insert=1.5,
        min_diff=-2.0,
        max_diff=1e300,
        min_size_to_sample=3,
        insert_stats=protos.RateLimiterCallStats(completed=7),
    )


class TestAttributes:
    def test_have_defaults(self):
        message = protos.RateLimiterInfo()
        assert message.samples_per_insert == 0.0
        assert message.min_size_to_sample == 0
        assert message.insert_stats.completed == 0

    def test_can_be_set(self):
        message = protos.RateLimiterInfo()
        message.min_size_to_sample = 5
        assert message.min_size_to_sample == 5

    def test_values_are_converted_to_the_type_of_their_field(self):
        message = protos.RateLimiterInfo(samples_per_insert=1)
        assert type(message.samples_per_insert) is float

    @pytest.mark.parametrize("name", ["nothing", "insert_statistics"])
    def test_unknown_attributes_are_refused(self, name):
        with pytest.raises(AttributeError, match="samples_per_insert"):
            getattr(protos.RateLimiterInfo(), name)
        with pytest.raises(AttributeError):
            protos.RateLimiterInfo(**{name: 1})

    def test_message_of_another_kind_is_refused(self):
        with pytest.raises(TypeError, match="insert_stats"):
            protos.RateLimiterInfo(insert_stats=protos.TableWorkerTime())

    def test_reading_a_message_does_not_set_it(self):
        message = protos.RateLimiterInfo()
        assert message.insert_stats.completed == 0
        assert not message.HasField("insert_stats")

    def test_setting_inside_a_message_sets_it(self):
        message = protos.RateLimiterInfo()
        message.insert_stats.completed = 4
        assert message.HasField("insert_stats")
        assert message.insert_stats.completed == 4

    def test_repeated_fields_are_lists(self):
        config = protos.ReverbServerConfig(port=3)
        config.tables.append(protos.PriorityTableCheckpoint(table_name="a"))
        assert [table.table_name for table in config.tables] == ["a"]
        with pytest.raises(AttributeError, match="append"):
            config.tables = []


class TestOneof:
    def test_setting_a_member_clears_the_others(self):
        options = Options(fifo=True)
        options.lifo = True
        assert options.WhichOneof("distribution") == "lifo"
        assert not options.HasField("fifo")

    def test_new_message_has_no_member_set(self):
        assert Options().WhichOneof("distribution") is None

    def test_a_member_set_to_false_is_set(self):
        assert Options(fifo=False).WhichOneof("distribution") == "fifo"

    def test_unknown_name(self):
        with pytest.raises(ValueError, match="nonsense"):
            Options().WhichOneof("nonsense")

    def test_has_field_of_a_field_without_presence_is_refused(self):
        with pytest.raises(ValueError, match="is_deterministic"):
            Options().HasField("is_deterministic")


class TestBytes:
    # The bytes that protobuf writes.
    @pytest.mark.parametrize(
        "message, data",
        [
            (Options(fifo=True, is_deterministic=True), "08013801"),
            (Options(uniform=True), "1001"),
            (
                Options(prioritized=Options.Prioritized(priority_exponent=0.5)),
                "1a0909000000000000e03f",
            ),
            (Options(heap=Options.Heap(), is_deterministic=True), "22003801"),
            (Options(heap=Options.Heap(min_heap=True), is_deterministic=True), "220208013801"),
            (Options(lifo=True), "3001"),
            (protos.RateLimiterCallStats(completed=300), "10ac02"),
            (protos.TableWorkerTime(sleeping_ms=-1), "20ffffffffffffffffff01"),
            (protos.PriorityTableCheckpoint(table_name="é"), "0a02c3a9"),
        ],
    )
    def test_equal_those_of_protobuf(self, message, data):
        assert message.SerializeToString().hex() == data
        assert type(message).FromString(bytes.fromhex(data)) == message

    def test_round_trip(self):
        message = info_message()
        again = protos.RateLimiterInfo.FromString(message.SerializeToString())
        assert again == message
        assert again.insert_stats.completed == 7
        assert not again.HasField("sample_stats")

    def test_unknown_fields_are_skipped(self):
        data = bytes.fromhex("9a0603616263") + Options(fifo=True).SerializeToString()
        assert Options.FromString(data) == Options(fifo=True)

    @pytest.mark.parametrize(
        "data", ["1a", "1a09", "1a0909", "08", "0b", "08ffffffffffffffffffff01"]
    )
    def test_malformed_bytes_are_refused(self, data):
        with pytest.raises(ValueError):
            Options.FromString(bytes.fromhex(data))

    @pytest.mark.parametrize("data", ["0a0101", "1801", "1901"])
    def test_wrong_wire_types_are_refused(self, data):
        with pytest.raises(ValueError):
            Options.FromString(bytes.fromhex(data))


class TestValue:
    def test_equality(self):
        assert info_message() == info_message()
        assert info_message() != protos.RateLimiterInfo()
        assert protos.RateLimiterInfo() != protos.TableWorkerTime()
        assert protos.RateLimiterInfo(min_diff=0.0) == protos.RateLimiterInfo()

    def test_copies(self):
        message = info_message()
        other = copy.deepcopy(message)
        other.insert_stats.completed = 8
        assert message.insert_stats.completed == 7
        message.CopyFrom(other)
        assert message.insert_stats.completed == 8

    def test_pickles(self):
        assert pickle.loads(pickle.dumps(info_message())) == info_message()

    def test_text(self):
        assert repr(info_message()) == (
            "samples_per_insert: 1.5\nmin_diff: -2\nmax_diff: 1e+300\nmin_size_to_sample: 3\n"
            "insert_stats {\n  completed: 7\n}\n"
        )
        assert repr(Options(fifo=True)) == "fifo: true\n"
        assert repr(protos.PriorityTableCheckpoint(table_name='a"')) == 'table_name: "a\\""\n'

    def test_modules_of_reverb(self):
        assert schema_pb2.KeyDistributionOptions is Options
        assert checkpoint_pb2.RateLimiterCheckpoint is protos.RateLimiterCheckpoint


class TestText:
    @pytest.mark.parametrize(
        "text, expected",
        [
            ("", Options()),
            ("fifo: true", Options(fifo=True)),
            ("lifo:1,is_deterministic:t", Options(lifo=True, is_deterministic=True)),
            (
                "# a comment\n prioritized { priority_exponent: .5 } # and one more",
                Options(prioritized=Options.Prioritized(priority_exponent=0.5)),
            ),
            ("heap: < min_heap: true; >;", Options(heap=Options.Heap(min_heap=True))),
            ("heap {}", Options(heap=Options.Heap())),
        ],
    )
    def test_parse_text_reads_a_message(self, text, expected):
        assert proto_text.parse_text(Options(), text) == expected

    def test_parse_text_reads_numbers_and_words(self):
        message = proto_text.parse_text(
            protos.PriorityTableCheckpoint(),
            "table_name: 'a\\n\"' max_size: 0x10 max_times_sampled: -3 "
            "rate_limiter { min_diff: -1.7976931348623157e+308 max_diff: inf }",
        )
        assert message.table_name == 'a\n"'
        assert (message.max_size, message.max_times_sampled) == (16, -3)
        assert message.rate_limiter.min_diff == -1.7976931348623157e308
        assert message.rate_limiter.max_diff == float("inf")

    @pytest.mark.parametrize(
        "text",
        [
            "tables { table_name: 'a' } tables { table_name: 'b' }",
            "tables: [{ table_name: 'a' }, { table_name: 'b' }]",
        ],
    )
    def test_parse_text_reads_repeated_fields(self, text):
        config = proto_text.parse_text(protos.ReverbServerConfig(), text)
        assert [table.table_name for table in config.tables] == ["a", "b"]

    def test_round_trip(self):
        again = proto_text.parse_text(protos.RateLimiterInfo(), repr(info_message()))
        assert again == info_message()

    @pytest.mark.parametrize(
        "text, why",
        [
            ("nothing: 1", "nothing"),
            ("fifo", "expected : after fifo"),
            ("fifo true", "expected : after fifo"),
            ("fifo: maybe", "fifo cannot be maybe"),
            ("fifo:", "no a value of fifo"),
            ("heap { min_heap: true", "}"),
            ("heap: 3", "expected { after heap"),
            ("prioritized { priority_exponent: x }", "cannot be x"),
            ("}", "found '}'"),
            ("fifo: 'true'", "cannot be 'true'"),
            ('fifo: "tr', "fifo"),
        ],
    )
    def test_malformed_text_is_refused(self, text, why):
        with pytest.raises(ValueError, match=re.escape(why)):
            proto_text.parse_text(Options(), text)


class TestTableInfo:
    # A TableInfo that dm-reverb 0.14 has serialized; its values are below.
    DATA = bytes.fromhex(
        "0a06220208013801120430013801180a20032a2109000000000000f03f11ffffffffffffefff19ff"
        "ffffffffffef7f20022a0032003278aa03750a200a0161121b8a02180a0178121112020802120b08"
        "ffffffffffffffffff0118010a210a0162121c9a03190a078a0204120018090a0ea2030b0a098a02"
        "061202180118070a2e0a01631229b203260a045061697212100a0179120b8a020812041202080318"
        "04120c0a017812078a02041200180a4203736967"
    )

    def test_from_bytes(self):
        info = reverb_types.TableInfo.from_serialized_proto(self.DATA)

        assert info.name == "sig"
        assert info.sampler_options == Options(
            heap=Options.Heap(min_heap=True), is_deterministic=True
        )
        assert info.remover_options.lifo
        assert (info.max_size, info.max_times_sampled, info.current_size) == (10, 3, 0)
        assert info.rate_limiter_info.min_size_to_sample == 2
        assert info.rate_limiter_info.insert_stats.completed == 0
        assert info.table_worker_time == protos.TableWorkerTime()

    def test_signature_from_bytes(self):
        info = reverb_types.TableInfo.from_serialized_proto(self.DATA)
        signature = specs.convert(info.signature)

        assert sorted(signature) == ["a", "b", "c"]
        assert signature["a"] == specs.TensorSpec((2, None), np.float32, "x")
        assert signature["b"] == [
            specs.TensorSpec((), np.int64),
            (specs.TensorSpec(None, str),),
        ]
        pair = signature["c"]
        assert type(pair).__name__ == "Pair" and pair._fields == ("y", "x")
        assert pair.y.shape == (3,) and pair.y.dtype == np.uint8

    def test_without_signature(self):
        info = reverb_types.TableInfo.from_serialized_proto(b"")
        assert info.name == "" and info.signature is None
        assert info.rate_limiter_info == protos.RateLimiterInfo()

    def test_a_node_of_unknown_kind_is_refused(self):
        with pytest.raises(ValueError, match="no spec"):
            reverb_types.decode_structure(bytes.fromhex("7001"))

    def test_fields_are_those_of_reverb(self):
        import dataclasses

        assert [field.name for field in dataclasses.fields(reverb_types.TableInfo)] == [
            "name",
            "sampler_options",
            "remover_options",
            "max_size",
            "max_times_sampled",
            "rate_limiter_info",
            "signature",
            "current_size",
            "num_episodes",
            "num_deleted_episodes",
            "num_unique_samples",
            "table_worker_time",
        ]


Pair = collections.namedtuple("Pair", "y x")
