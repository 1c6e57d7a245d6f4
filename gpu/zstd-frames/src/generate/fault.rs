//! What can be wrong with a frame on purpose.

/// A fault, named after the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Fault {
    Magic,
    HeaderShort,
    HeaderReserved,
    Window,
    Dictionary,
    ContentSize,
    ChecksumWrong,
    ChecksumShort,
    Trailing,
    TrailingGarbage,
    NoLastBlock,
    BlockHeaderShort,
    BlockShort,
    BlockReserved,
    BlockTooSmall,
    BlockTooLarge,
    BlockOutput,
    SizeLess,
    SizeMore,
    LiteralsShort,
    LiteralsBlockMax,
    LiteralsRoom,
    LiteralsFew,
    TreelessFirst,
    WeightTooLarge,
    WeightsSum,
    WeightsZero,
    WeightsLightest,
    WeightsLog,
    WeightsCounts,
    WeightsCountsLog,
    WeightsEndless,
    WeightsStream,
    WeightsFill,
    HuffmanShort,
    Jump,
    StreamExtra,
    StreamMissing,
    StreamZero,
    StreamEmpty,
    StreamNoise,
    SequencesMissing,
    SequencesTrailing,
    SequencesCut,
    ModesReserved,
    CountMore,
    CountLess,
    RleSymbol,
    TableCounts,
    TableLog,
    TableSymbols,
    RepeatFirst,
    BitsEmpty,
    BitsZero,
    BitsExtra,
    BitsMissing,
    OffsetZero,
    OffsetBeyond,
    OffsetPreviousFrame,
    LiteralsBeyond,
}

/// All of them.
pub(super) const ALL: [Fault; 60] = {
    use Fault::*;
    [
        Magic,
        HeaderShort,
        HeaderReserved,
        Window,
        Dictionary,
        ContentSize,
        ChecksumWrong,
        ChecksumShort,
        Trailing,
        TrailingGarbage,
        NoLastBlock,
        BlockHeaderShort,
        BlockShort,
        BlockReserved,
        BlockTooSmall,
        BlockTooLarge,
        BlockOutput,
        SizeLess,
        SizeMore,
        LiteralsShort,
        LiteralsBlockMax,
        LiteralsRoom,
        LiteralsFew,
        TreelessFirst,
        WeightTooLarge,
        WeightsSum,
        WeightsZero,
        WeightsLightest,
        WeightsLog,
        WeightsCounts,
        WeightsCountsLog,
        WeightsEndless,
        WeightsStream,
        WeightsFill,
        HuffmanShort,
        Jump,
        StreamExtra,
        StreamMissing,
        StreamZero,
        StreamEmpty,
        StreamNoise,
        SequencesMissing,
        SequencesTrailing,
        SequencesCut,
        ModesReserved,
        CountMore,
        CountLess,
        RleSymbol,
        TableCounts,
        TableLog,
        TableSymbols,
        RepeatFirst,
        BitsEmpty,
        BitsZero,
        BitsExtra,
        BitsMissing,
        OffsetZero,
        OffsetBeyond,
        OffsetPreviousFrame,
        LiteralsBeyond,
    ]
};

impl Fault {
    /// Whether it needs literals with a tree of their own.
    pub(super) fn in_tree(self) -> bool {
        use Fault::*;
        matches!(
            self,
            WeightTooLarge
                | WeightsSum
                | WeightsZero
                | WeightsLightest
                | WeightsLog
                | WeightsCounts
                | WeightsCountsLog
                | WeightsEndless
                | WeightsStream
                | WeightsFill
        )
    }

    /// Whether it needs Huffman-coded literals.
    pub(super) fn in_huffman(self) -> bool {
        use Fault::*;
        self.in_tree()
            || matches!(
                self,
                LiteralsFew | TreelessFirst | HuffmanShort | Jump | StreamExtra | StreamMissing | StreamZero | StreamEmpty | StreamNoise
            )
    }

    /// Whether it needs sequences.
    pub(super) fn in_sequences(self) -> bool {
        self >= Fault::ModesReserved
    }

    /// Whether it needs a compressed block.
    pub(super) fn in_compressed(self) -> bool {
        use Fault::*;
        self.in_huffman()
            || self.in_sequences()
            || matches!(
                self,
                BlockTooSmall
                    | BlockTooLarge
                    | BlockOutput
                    | LiteralsShort
                    | LiteralsBlockMax
                    | LiteralsRoom
                    | SequencesMissing
                    | SequencesTrailing
                    | SequencesCut
            )
    }
}
