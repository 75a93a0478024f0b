#include "dualfield/streaming/corpus_blocks.hpp"

#include <algorithm>
#include <optional>

#include "dualfield/core/memory.hpp"
#include "file_access.hpp"

namespace dualfield {
namespace {

constexpr std::size_t kLine = 64;

class ChainBlockInMemory final : public LoadedBlock {
  public:
    ChainBlockInMemory(const ChainFormat& format, const BlockPlace& place, int file, const std::string& path,
                       std::size_t block)
        : path_(path), block_(block) {
        read(place, file);
        const std::int64_t* offsets = counted<std::int64_t>(BlockArray::offsets, place);
        counted<std::int64_t>(BlockArray::indptr, place);
        const std::size_t n = count<std::int64_t>(BlockArray::offsets, place) - 1;
        const std::size_t n_nodes = count<std::int64_t>(BlockArray::indptr, place) - 1;
        check_starts(offsets, n, n_nodes, "sentences");
        const FeatureRows rows = sparse_rows(place, BlockArray::indptr, BlockArray::indices, *format.node);
        const auto* codes = array<std::int32_t>(BlockArray::codes);
        if (count<std::int32_t>(BlockArray::codes, place) != n_nodes)
            damaged("its labels are not as many as its nodes");
        check_below(codes, n_nodes, format.topology->n_labels(), "labels");
        structure_.emplace(*format.topology, std::span<const std::int64_t>(offsets, n + 1), format.options);
        std::vector<ScoreMap::Table> tables{{format.node, rows}};
        if (format.pair)
            tables.push_back(
                {format.pair, sparse_rows(place, BlockArray::pair_indptr, BlockArray::pair_indices, *format.pair)});
        scores_.emplace(structure_->parts(), std::move(tables), format.shared_mask);
        weigh(format, offsets, codes, n);
        problem_ = {.structure = &*structure_,
                    .scores = &*scores_,
                    .labels = codes,
                    .weights = weights_.data(),
                    .cost = format.cost,
                    .temperature = format.temperature};
    }

    const Problem& problem() const override { return problem_; }
    std::size_t bytes() const override { return bytes_.size() + weights_.size() * sizeof(double); }

  private:
    [[noreturn]] void damaged(const std::string& what) const {
        throw DamagedBlock(path_ + " is altered: in block " + std::to_string(block_) + " " + what + ".");
    }

    void read(const BlockPlace& place, int file) {
        std::size_t total = 0;
        for (std::size_t a = 0; a < kBlockArrays; ++a) {
            begins_[a] = total;
            total += (static_cast<std::size_t>(place.arrays[a].bytes) + kLine - 1) / kLine * kLine;
        }
        bytes_ = Aligned<std::byte>(std::max<std::size_t>(total, 1));
        for (std::size_t a = 0; a < kBlockArrays; ++a) {
            const ByteRange& range = place.arrays[a];
            if (!read_range(file, path_, range.begin,
                            {bytes_.data() + begins_[a], static_cast<std::size_t>(range.bytes)}))
                damaged("bytes are missing");
        }
    }

    template <class T>
    T* array(BlockArray which) {
        return reinterpret_cast<T*>(bytes_.data() + begins_[static_cast<std::size_t>(which)]);
    }
    template <class T>
    static std::size_t count(BlockArray which, const BlockPlace& place) {
        return static_cast<std::size_t>(place.arrays[static_cast<std::size_t>(which)].bytes) / sizeof(T);
    }
    // Starts that count from the beginning of the block.
    template <class T>
    T* counted(BlockArray which, const BlockPlace& place) {
        const std::size_t n = count<T>(which, place);
        if (n == 0) damaged("an array is missing");
        T* starts = array<T>(which);
        const T first = starts[0];
        for (std::size_t i = 0; i < n; ++i) starts[i] -= first;
        return starts;
    }
    void check_starts(const std::int64_t* starts, std::size_t n, std::size_t end, const char* of) const {
        bool rises = starts[n] == static_cast<std::int64_t>(end);
        for (std::size_t i = 0; i < n; ++i) rises = rises && starts[i] <= starts[i + 1];
        if (!rises) damaged(std::string("the starts of its ") + of + " do not rise to their number");
    }
    void check_below(const std::int32_t* numbers, std::size_t n, std::size_t end, const char* of) const {
        bool holds = true;
        for (std::size_t j = 0; j < n; ++j) holds &= numbers[j] >= 0 && static_cast<std::size_t>(numbers[j]) < end;
        if (!holds) damaged(std::string("some of its ") + of + " are out of range");
    }
    FeatureRows sparse_rows(const BlockPlace& place, BlockArray starts, BlockArray columns, const LinearMap& map) {
        const bool is_node = starts == BlockArray::indptr;
        const std::int64_t* indptr = is_node ? array<std::int64_t>(starts) : counted<std::int64_t>(starts, place);
        const std::size_t n_rows = count<std::int64_t>(starts, place) - 1;
        const std::size_t n_entries = count<std::int32_t>(columns, place);
        const auto* indices = array<std::int32_t>(columns);
        if (n_rows != count<std::int64_t>(BlockArray::indptr, place) - 1) damaged("rows of label pairs are missing");
        check_starts(indptr, n_rows, n_entries, "rows");
        check_below(indices, n_entries, map.n_columns(), "columns");
        const double* values = nullptr;
        if (is_node && count<double>(BlockArray::values, place) > 0) {
            if (count<double>(BlockArray::values, place) != n_entries) damaged("values are missing");
            values = array<double>(BlockArray::values);
        }
        return {.indptr = indptr, .indices = indices, .values = values, .n_columns = map.n_columns()};
    }

    void weigh(const ChainFormat& format, const std::int64_t* offsets, const std::int32_t* codes, std::size_t n) {
        weights_.assign(n, format.C);
        if (!format.label_factors) return;
        for (std::size_t i = 0; i < n; ++i) {
            const std::int64_t length = offsets[i + 1] - offsets[i];
            double sum = 0.0;
            for (std::int64_t t = offsets[i]; t < offsets[i + 1]; ++t) sum += format.label_factors[codes[t]];
            if (length > 0) weights_[i] = format.C * (sum / static_cast<double>(length));
        }
    }

    std::string path_;
    std::size_t block_;
    Aligned<std::byte> bytes_;
    std::array<std::size_t, kBlockArrays> begins_{};
    std::vector<double> weights_;
    std::optional<ChainStructure> structure_;
    std::optional<ScoreMap> scores_;
    Problem problem_;
};

}  // namespace

CorpusBlocks::CorpusBlocks(const ChainFormat& format, std::vector<std::string> files, std::vector<BlockPlace> places)
    : format_(format), files_(std::move(files)), places_(std::move(places)) {
    for (const BlockPlace& place : places_)
        if (place.file >= files_.size()) throw std::invalid_argument("a block must be in one of the files");
    try {
        for (const std::string& path : files_) open_.push_back(open_to_read(path));
    } catch (...) {
        for (const int file : open_) close_file(file);
        throw;
    }
}

CorpusBlocks::~CorpusBlocks() {
    for (const int file : open_) close_file(file);
}

std::size_t CorpusBlocks::size() const {
    const std::size_t n_ends = format_.options.with_ends ? 2 * format_.topology->n_labels() : 0;
    return format_.node->size() + (format_.pair ? format_.pair->size() : 0) + format_.topology->n_cliques() + n_ends;
}

std::unique_ptr<LoadedBlock> CorpusBlocks::load(std::size_t block) const {
    const BlockPlace& place = places_[block];
    return std::make_unique<ChainBlockInMemory>(format_, place, open_[place.file], files_[place.file], block);
}

}  // namespace dualfield
